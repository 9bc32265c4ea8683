/** What holds for a destination that a route leads to. */
import type { ErrorCode } from '../../errors/index.ts'
import type { TlsSettings } from '../../exchange/connection.ts'
import type { Step } from '../../policies/define.ts'
import type { BackendPlace } from '../../policies/merge.ts'
import type { Destination } from '../upstream/destination.ts'
import { UpstreamProfiles } from '../upstream/profile.ts'
import { type BoundPolicies, noPolicies } from './policies.ts'
import type { NamedTarget } from './rules.ts'

/** The part of a backend that a route leads to. */
export interface BackendPart {
  /** What policies may call it. */
  readonly sections: readonly string[]
  /** The object that stands behind the backend, which policies may name as well. */
  readonly behind?: BackendPlace
  /** Requests must never be sent to it in clear. */
  readonly needsTls: boolean
  /** Settings of the TLS that requests are sent by unless a policy settles it; made when asked for. */
  readonly defaultTls?: () => TlsSettings
  /** Adds credentials where no policy does. */
  readonly credentials?: Step
}

/** The destinations of a backend at one address, by the version that is spoken. */
interface KeptDestinations {
  readonly of: unknown
  '1.1'?: Destination
  '2'?: Destination
  negotiated?: Destination
}

export interface BackendAccess {
  readonly policies: BoundPolicies
  readonly profiles: UpstreamProfiles
  /** Of the policies, those that look at requests. */
  readonly steps: readonly Step[]
  /** What resolving has made of it; it stays as long as policies and backend do. */
  destinations?: KeptDestinations
  /** Why nothing may be sent there; undefined where it may. */
  readonly problem: { readonly code: ErrorCode; readonly detail?: string } | undefined
}

/** For requests. */
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

const withoutPolicies = new WeakMap<NamedTarget, BackendAccess>()

/** The same for a target that many rules share: where nothing is said of it, all have one. */
export function sharedAccess(
  target: NamedTarget,
  policies: BoundPolicies,
  part: BackendPart,
): BackendAccess {
  const isSpecial = part.needsTls || part.defaultTls !== undefined || part.credentials !== undefined
  if (policies !== noPolicies || isSpecial) return httpAccess(policies, part)
  let access = withoutPolicies.get(target)
  if (access === undefined) {
    access = httpAccess(policies, part)
    withoutPolicies.set(target, access)
  }
  return access
}

/** For connections that are forwarded unread. */
export function streamAccess(found: BoundPolicies): BackendAccess {
  const policies = withGatewayCertificate(found)
  const { closed, connection } = policies
  return {
    policies,
    profiles: new UpstreamProfiles(connection),
    steps: policies.steps.filter(
      ({ onRequest, mcp }) => onRequest !== undefined && mcp === undefined,
    ),
    // A policy that cannot be enforced (TLS, credentials) closes the way to its backend.
    problem: closed === undefined ? undefined : { code: 'policy_unenforceable', detail: closed },
  }
}

/** TLS that asks for the certificate of the Gateway gets it, where the Gateway has one. */
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

function withTls(policies: BoundPolicies, defaultTls: () => TlsSettings): BoundPolicies {
  const { connection } = policies
  if (connection.tls !== undefined) return policies
  return { ...policies, connection: { ...connection, tls: defaultTls() } }
}

/** Last of all, as those of a policy would be: signatures cover what the others have made. */
function withCredentials(access: BackendAccess, credentials: Step | undefined): BackendAccess {
  const isSettled = access.policies.connection.credentials !== undefined
  if (credentials === undefined || isSettled) return access
  return { ...access, steps: [...access.steps, credentials] }
}

function httpProblem({ connection }: BoundPolicies, needsTls: boolean): BackendAccess['problem'] {
  const isClear = needsTls && connection.tls === undefined
  return isClear ? { code: 'backend_needs_tls' } : undefined
}
