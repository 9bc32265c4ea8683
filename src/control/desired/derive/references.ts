/** Resolves references to backends: does the target exist, is the reference permitted, can it be served? */

import { gatewayGroup, ownGroup } from '../../../ground/model/api-names.ts'
import { appProtocolOf, knownAppProtocols } from '../../../ground/model/app-protocols.ts'
import type { ObjectRef } from '../../../ground/model/names.ts'
import type { BackendReference } from '../../../ground/model/references.ts'
import type { BackendTarget, DirectTarget } from '../../../ground/model/resources.ts'
import type { RouteTraits } from '../../api/kind.ts'
import { type Failure, notOwn } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { readService } from './service.ts'

export interface Referrer {
  /** API group of the kind; if omitted, the group of Gateway API. */
  readonly group?: string
  readonly kind: string
  readonly namespace: string
}

interface Referent extends ObjectRef {
  readonly group: string
}

/** Whether one of the ReferenceGrants in the referent's namespace permits the cross-namespace reference. */
export function isGranted(from: Referrer, to: Referent, grants: readonly ObjectState[]): boolean {
  return grants.some(({ object }) => {
    if (object === undefined) return false
    const grant = specOf<'ReferenceGrant'>(object)
    const fromMatches = grant.from.some(
      ({ group, kind, namespace }) =>
        group === (from.group ?? gatewayGroup) &&
        kind === from.kind &&
        namespace === from.namespace,
    )
    const toMatches = grant.to.some(
      ({ group, kind, name }) =>
        group === to.group && kind === to.kind && (name === undefined || name === to.name),
    )
    return fromMatches && toMatches
  })
}

/** The object that ReferenceGrants name for references of policies, inline ones of backends included. */
export const policyReferrer = (namespace: string): Referrer => ({
  group: ownGroup,
  kind: 'GatewayPolicy',
  namespace,
})

/** Why the reference is not permitted; undefined if it is. */
export function grantFailure(from: Referrer, to: Referent, read: Reader): Failure | undefined {
  if (from.namespace === to.namespace) return undefined
  if (isGranted(from, to, read.index('grants', to.namespace))) return undefined
  const message = `no ReferenceGrant in namespace ${to.namespace} permits ${from.kind}s of ${from.namespace} to refer to ${to.kind} ${to.name}`
  return { reason: 'RefNotPermitted', message, ...notOwn }
}

export interface ResolvedBackend<Target extends BackendTarget = DirectTarget> {
  readonly target: Target
  /** Set if the target is invalid, or if it exists but cannot be used. */
  readonly failure: Failure | undefined
}

export function invalid(reason: string, message: string): ResolvedBackend {
  return { target: { type: 'invalid', reason, message }, failure: { reason, message } }
}

/** Like `invalid`, but not the object's own mistake: another object can make the reference valid. */
export function unmet({ reason, message }: Omit<Failure, 'own'>): ResolvedBackend {
  return { ...invalid(reason, message), failure: { reason, message, ...notOwn } }
}

export function notFound(label: string, state: ObjectState | undefined): ResolvedBackend {
  const missing = state === undefined ? 'does not exist' : 'has no valid version'
  return unmet({ reason: 'BackendNotFound', message: `${label} ${missing}` })
}

/** What a route sends to a backend, or `call` for calls that policies make. */
export type BackendUse = RouteTraits['carries'] | 'call'

/**
 * Resolves a reference to a Service or a GatewayBackend. A missing target or permission fails
 * ResolvedRefs. A backend that exists but cannot be served keeps its share; its requests fail with 500.
 */
export function resolveBackend(
  reference: BackendReference,
  from: Referrer,
  read: Reader,
  use: BackendUse = 'call',
): ResolvedBackend {
  const { group = '', kind = 'Service', name } = reference
  const namespace = reference.namespace ?? from.namespace
  const isService = group === '' && kind === 'Service'
  if (!isService && !(group === ownGroup && kind === 'GatewayBackend')) {
    const hint = kind === 'GatewayBackend' ? `; write group: ${ownGroup}` : ''
    return invalid(
      'InvalidKind',
      `backendRef to ${kind} of group "${group}" is not supported${hint}`,
    )
  }
  const refused = grantFailure(from, { group, kind, namespace, name }, read)
  if (refused !== undefined) return unmet(refused)
  return isService
    ? resolveService(reference, namespace, read, use)
    : resolveOwn(name, namespace, read)
}

function resolveOwn(name: string, namespace: string, read: Reader): ResolvedBackend {
  const state = read.object('GatewayBackend', namespace, name)
  if (state?.object === undefined) return notFound(`GatewayBackend ${namespace}/${name}`, state)
  return { target: { type: 'backend', namespace, name }, failure: undefined }
}

function resolveService(
  reference: BackendReference,
  namespace: string,
  read: Reader,
  use: BackendUse,
): ResolvedBackend {
  const { name, port } = reference
  const service = readService(namespace, name, read)
  if (service === undefined) {
    const isOwn = read.object('GatewayBackend', namespace, name) !== undefined
    const hint = isOwn
      ? `, but a GatewayBackend of this name does; write group: ${ownGroup} and kind: GatewayBackend`
      : ''
    const message = `Service ${namespace}/${name} does not exist${hint}`
    return unmet({ reason: 'BackendNotFound', message })
  }
  if (port === undefined) {
    return invalid('BackendNotFound', `backendRef to Service ${namespace}/${name} has no port`)
  }
  if (service.type === 'ExternalName') {
    const message = `Service ${namespace}/${name} is of type ExternalName; use a GatewayBackend`
    return invalid('UnsupportedValue', message)
  }
  const transport = use === 'udp' ? 'UDP' : 'TCP'
  const found = service.ports?.find(
    (candidate) => candidate.port === port && (candidate.protocol ?? 'TCP') === transport,
  )
  if (found === undefined) {
    const message = `Service ${namespace}/${name} has no ${transport} port ${port}`
    return invalid('BackendNotFound', message)
  }
  const problem = protocolProblem(found.appProtocol, use)
  if (problem !== undefined) {
    const message = `appProtocol ${found.appProtocol} of Service ${namespace}/${name} port ${port} ${problem}`
    return invalid('UnsupportedProtocol', message)
  }
  return { target: { type: 'service', namespace, name, port }, failure: undefined }
}

/** Why the appProtocol of a Service port rules out these requests (GEP-1911); undefined if it does not. */
function protocolProblem(appProtocol: string | undefined, use: BackendUse): string | undefined {
  if (use !== 'http' && use !== 'grpc') return undefined
  // Protocols with our own prefix, such as MCP, are all based on HTTP.
  if (appProtocol?.toLowerCase().startsWith(`${ownGroup}/`) === true) return undefined
  const found = appProtocolOf(appProtocol)
  if (found === undefined) {
    return `is not known to be spoken in HTTP; known are ${knownAppProtocols.join(', ')}`
  }
  // gRPC needs HTTP/2.
  return use === 'grpc' && found.version === '1.1' ? 'cannot carry gRPC' : undefined
}
