/** Following references: does the target exist, is it permitted, can it be served? */
import { gatewayGroup, ownGroup } from '../../api/names.ts'
import { appProtocolOf, knownAppProtocols } from '../../model/app-protocols.ts'
import type { BackendReference } from '../../model/references.ts'
import type { BackendTarget, DirectTarget } from '../../model/resources.ts'
import { elsewhere, type Failure } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import { specOf } from '../specs.ts'

export interface Referrer {
  /** Of the API; that of the Gateway API where absent. */
  readonly group?: string
  readonly kind: string
  readonly namespace: string
}

/** Is a cross-namespace reference granted? (Gateway API ReferenceGrant.) */
export function isGranted(
  from: Referrer,
  to: { readonly group: string; readonly kind: string; readonly namespace: string; name: string },
  read: Reader,
): boolean {
  if (from.namespace === to.namespace) return true
  return read.index('grants', to.namespace).some(({ object }) => {
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

/** Why a reference may not be followed; undefined where it may. */
export function grantProblem(
  from: Referrer,
  to: Parameters<typeof isGranted>[1],
  read: Reader,
): string | undefined {
  if (isGranted(from, to, read)) return undefined
  return `no ReferenceGrant in namespace ${to.namespace} permits ${from.kind}s of ${from.namespace} to refer to ${to.kind} ${to.name}`
}

export interface ResolvedBackend<Target extends BackendTarget = DirectTarget> {
  readonly target: Target
  /** Set where the target is invalid, or exists and cannot be used. */
  readonly failure: Failure | undefined
}

export function invalid(reason: string, message: string): ResolvedBackend {
  return { target: { type: 'invalid', reason, message }, failure: { reason, message } }
}

/** As `invalid`, for a reference that another object makes valid. */
export function unmet(reason: string, message: string): ResolvedBackend {
  const failure = { reason, message, ...elsewhere }
  return { target: { type: 'invalid', reason, message }, failure }
}

/** What a route sends to its backends: requests, connections or datagrams; or what a policy asks. */
export type BackendUse = 'http' | 'grpc' | 'tcp' | 'udp' | 'call'

/**
 * Resolves a reference to a Service or a GatewayBackend. Existence and permission decide ResolvedRefs; a backend that
 * exists but cannot be served yet keeps its place and answers 500.
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
    return invalid('InvalidKind', `backendRef to ${kind} of group "${group}" is not supported`)
  }
  const refused = grantProblem(from, { group, kind, namespace, name }, read)
  if (refused !== undefined) return unmet('RefNotPermitted', refused)
  return isService
    ? resolveService(reference, namespace, read, use)
    : resolveOwn(name, namespace, read)
}

function resolveOwn(name: string, namespace: string, read: Reader): ResolvedBackend {
  const state = read.object('GatewayBackend', namespace, name)
  if (state?.object === undefined) {
    const missing = state === undefined ? 'does not exist' : 'has no valid version'
    return unmet('BackendNotFound', `GatewayBackend ${namespace}/${name} ${missing}`)
  }
  return { target: { type: 'backend', namespace, name }, failure: undefined }
}

function resolveService(
  reference: BackendReference,
  namespace: string,
  read: Reader,
  use: BackendUse,
): ResolvedBackend {
  const { name, port } = reference
  const service = read.object('Service', namespace, name)?.object
  if (service === undefined) {
    return unmet('BackendNotFound', `Service ${namespace}/${name} does not exist`)
  }
  if (port === undefined) {
    return invalid('BackendNotFound', `backendRef to Service ${namespace}/${name} has no port`)
  }
  const spec = specOf<'Service'>(service)
  if (spec.type === 'ExternalName') {
    const message = `Service ${namespace}/${name} is of type ExternalName; use a GatewayBackend`
    return invalid('UnsupportedValue', message)
  }
  const transport = use === 'udp' ? 'UDP' : 'TCP'
  const found = spec.ports?.find(
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

/** Why requests cannot be sent by the protocol that a Service port has (GEP-1911). */
function protocolProblem(appProtocol: string | undefined, use: BackendUse): string | undefined {
  if (use !== 'http' && use !== 'grpc') return undefined
  // Ours say more of what is spoken in HTTP, such as MCP.
  if (appProtocol?.toLowerCase().startsWith(`${ownGroup}/`) === true) return undefined
  const found = appProtocolOf(appProtocol)
  if (found === undefined) {
    return `is not known to be spoken in HTTP; known are ${knownAppProtocols.join(', ')}`
  }
  // gRPC needs HTTP/2.
  return use === 'grpc' && found.version === '1.1' ? 'cannot carry gRPC' : undefined
}
