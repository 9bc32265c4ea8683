/** The merged policies of a destination, and how they apply to connections. */
import type { ErrorCode } from '../../../ground/errors/index.ts'
import type { TlsSettings } from '../../../ground/exchange/connection.ts'
import type { ObjectRef } from '../../../ground/model/names.ts'
import type { Step } from '../../policies/define.ts'
import type { BackendPlace } from '../../policies/merge.ts'
import type { Destination } from '../upstream/destination.ts'
import { UpstreamProfiles } from '../upstream/profile.ts'
import { type BoundPolicies, noPolicies } from './policies.ts'
import type { NamedTarget } from './rules.ts'

/** The part of a backend that a route refers to. */
export interface BackendPart {
  /** Section names by which policies may target it. */
  readonly sections: readonly string[]
  /** The object whose policies apply in place of those of the backend. */
  readonly object?: ObjectRef
  /** The object that serves the backend, which policies may also target. */
  readonly behind?: BackendPlace
  /** Whether requests must not be sent in plaintext. */
  readonly needsTls: boolean
  /** TLS settings that are used unless a policy sets others. */
  readonly defaultTls?: () => TlsSettings
  /** Step that adds credentials, unless a policy does so. */
  readonly credentials?: Step
}

/** The destinations of a backend at one address, by HTTP version. */
interface CachedDestinations {
  readonly of: unknown
  '1.1'?: Destination
  '2'?: Destination
  negotiated?: Destination
}

export interface BackendAccess {
  readonly policies: BoundPolicies
  readonly profiles: UpstreamProfiles
  /** Steps of the policies, which run for every attempt. */
  readonly steps: readonly Step[]
  /** Cached destinations; valid as long as the policies and the backend do not change. */
  destinations?: CachedDestinations
  /** Why requests must not be sent to the destination; undefined if they may. */
  readonly problem: { readonly code: ErrorCode; readonly detail?: string } | undefined
}

/** Makes the access for HTTP requests. */
export function httpAccess(
  found: BoundPolicies,
  { needsTls, defaultTls, credentials }: Omit<BackendPart, 'sections'>,
): BackendAccess {
  const policies = defaultTls === undefined ? found : withTls(found, defaultTls)
  const access = withCredentials(streamAccess(policies), credentials)
  return access.problem === undefined
    ? { ...access, problem: httpProblem(access.policies, needsTls) }
    : access
}

const accessWithoutPolicies = new WeakMap<NamedTarget, BackendAccess>()

/** Like `httpAccess`, but all rules share one object for a target without policies. */
export function sharedAccess(
  target: NamedTarget,
  policies: BoundPolicies,
  part: BackendPart,
): BackendAccess {
  const isSpecial = part.needsTls || part.defaultTls !== undefined || part.credentials !== undefined
  if (policies !== noPolicies || isSpecial) return httpAccess(policies, part)
  let access = accessWithoutPolicies.get(target)
  if (access === undefined) {
    access = httpAccess(policies, part)
    accessWithoutPolicies.set(target, access)
  }
  return access
}

/** Makes the access for connections that are forwarded without being read. */
export function streamAccess(found: BoundPolicies): BackendAccess {
  const policies = withGatewayCertificate(found)
  const { closed, lacksCredential, connection } = policies
  const code = lacksCredential === true ? 'credential_missing' : 'policy_unenforceable'
  return {
    policies,
    profiles: new UpstreamProfiles(connection),
    steps: policies.steps.filter(
      ({ onRequest, mcp }) => onRequest !== undefined && mcp === undefined,
    ),
    // If a policy for TLS or credentials cannot be enforced, nothing is sent to the backend.
    problem: closed === undefined ? undefined : { code, detail: closed },
  }
}

/** Adds the client certificate of the Gateway, if there is one, to TLS settings that ask for it. */
function withGatewayCertificate(policies: BoundPolicies): BoundPolicies {
  const { tls, gatewayCertificate } = policies.connection
  if (gatewayCertificate === undefined || tls?.presenting === undefined) return policies
  try {
    const connection = { ...policies.connection, tls: tls.presenting(gatewayCertificate) }
    return { ...policies, connection }
  } catch (error) {
    const closed = `the client certificate of the Gateway cannot be used: ${String(error)}`
    return { ...policies, closed }
  }
}

/** Adds default TLS settings, unless policies set TLS. */
export function withTls(
  policies: BoundPolicies,
  defaultTls: () => TlsSettings | undefined,
): BoundPolicies {
  const { connection } = policies
  if (connection.tls !== undefined) return policies
  return { ...policies, connection: { ...connection, tls: defaultTls() } }
}

/** Appends the step that adds credentials. It runs last, because signatures cover all other changes. */
function withCredentials(access: BackendAccess, credentials: Step | undefined): BackendAccess {
  const isSettled = access.policies.connection.credentials !== undefined
  if (credentials === undefined || isSettled) return access
  return { ...access, steps: [...access.steps, credentials] }
}

function httpProblem({ connection }: BoundPolicies, needsTls: boolean): BackendAccess['problem'] {
  const isClear = needsTls && connection.tls === undefined
  return isClear ? { code: 'backend_needs_tls' } : undefined
}
