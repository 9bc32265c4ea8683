/**
 * Bytes to desired state. A resource that this version cannot read (a type, a word or a shape from
 * a later version) is named and left out; the rest of its change set stands.
 */
import { fromBinary } from '@bufbuild/protobuf'
import {
  type Age as AgeMessage,
  type ListenerTls_Authority as AuthorityMessage,
  type Backend as BackendMessage,
  DeltaSchema,
  type Listener as ListenerMessage,
  type ListenerTls as ListenerTlsMessage,
  type ObjectRef as ObjectRefMessage,
  type Policy as PolicyMessage,
  type Resource as ResourceMessage,
  type Secret as SecretMessage,
  type SecretRef as SecretRefMessage,
  type Service as ServiceMessage,
  type Versioned as VersionedMessage,
  type Workload as WorkloadMessage,
} from '../../proto/gen/resource_pb.ts'
import { Repeated, sharedText } from '../base/repeated.ts'
import type { Age, ObjectRef } from '../model/names.ts'
import type {
  Authority,
  BackendResource,
  DesiredDelta,
  ListenerResource,
  ListenerTls,
  PolicyResource,
  Resource,
  ResourceKey,
  SecretRef,
  SecretResource,
  ServiceResource,
  VersionedResource,
  WorkloadResource,
} from '../model/resources.ts'
import { decodeDestination } from './decode-destination.ts'
import { decodeRoute, decodeStream } from './decode-route.ts'
import { decodePod, decodePool } from './pools.ts'
import { hasUnknownFields } from './unknown-fields.ts'
import { oneOf, present, Unreadable } from './unreadable.ts'

/** A resource that could not be read, or not wholly; the receiver rejects it by its key. */
export interface UnreadableResource {
  /** Empty where not even the key could be read. */
  readonly key: ResourceKey
  readonly version: string
  /** Of the error catalogue; what is partly known is in force as far as it is known. */
  readonly code: 'resource_unreadable' | 'resource_partly_known'
  readonly message: string
}

export interface DecodedDelta extends DesiredDelta {
  readonly unreadable: readonly UnreadableResource[]
}

const protocols = ['HTTP', 'HTTPS', 'TLS', 'TCP', 'UDP'] as const
const udp = ['UDP'] as const
const sections = ['frontend', 'traffic', 'backend'] as const
const phases = ['PreRouting', 'PostRouting'] as const

const refs = new Repeated<ObjectRef>()

export function decodeRef(message: ObjectRefMessage | undefined, what: string): ObjectRef {
  const { kind, namespace, name } = present(message, what)
  return refs.share(JSON.stringify([kind, namespace, name]), {
    kind: sharedText(kind),
    namespace: sharedText(namespace),
    name,
  })
}

export function decodeAge(message: AgeMessage | undefined): Age {
  const { created, order } = present(message, 'age')
  return { created: Number(created), order: Number(order) }
}

function decodeListener(key: ResourceKey, message: ListenerMessage): ListenerResource {
  return {
    type: 'listener',
    key,
    gateway: { namespace: message.gatewayNamespace, name: message.gatewayName },
    owner: decodeRef(message.owner, 'owner'),
    section: message.section,
    port: message.port,
    protocol: oneOf(protocols, message.protocol, 'protocol'),
    hostname: message.hostname,
    ...(message.tls !== undefined && { tls: decodeTls(message.tls) }),
  }
}

function decodeSecretRef(message: SecretRefMessage | undefined, what: string): SecretRef {
  const { namespace, name, key, digest } = present(message, what)
  return { namespace, name, key, digest }
}

function decodeAuthority({ kind }: AuthorityMessage): Authority {
  switch (kind.case) {
    case 'pem':
      return { pem: kind.value }
    case 'secret':
      return { secret: decodeSecretRef(kind.value, 'authority') }
    default:
      throw new Unreadable('an authority of a type that this version does not know')
  }
}

function decodeTls({ certificates, clients }: ListenerTlsMessage): ListenerTls {
  return {
    ...(clients !== undefined && {
      clients: {
        required: clients.required,
        authorities: clients.authorities.map(decodeAuthority),
      },
    }),
    certificates: certificates.map(({ certificate, privateKey }) => ({
      certificate: decodeSecretRef(certificate, 'certificate'),
      privateKey: decodeSecretRef(privateKey, 'private key'),
    })),
  }
}

/** The value is copied: the bytes of the change set need not live as long as it does. */
function decodeSecret(key: ResourceKey, { digest, value }: SecretMessage): SecretResource {
  return { type: 'secret', key, digest, value: Uint8Array.from(value) }
}

function decodeBackend(key: ResourceKey, message: BackendMessage): BackendResource {
  const { namespace, name } = message
  return { type: 'backend', key, namespace, name, destination: decodeDestination(message) }
}

function decodeService(key: ResourceKey, message: ServiceMessage): ServiceResource {
  const { namespace, name, publishNotReady } = message
  const ports = message.ports.map((port) => ({
    name: port.name,
    port: port.port,
    ...(port.protocol !== undefined && { protocol: oneOf(udp, port.protocol, 'protocol') }),
    ...(port.targetPort !== undefined && { targetPort: port.targetPort }),
    ...(port.appProtocol !== undefined && { appProtocol: port.appProtocol }),
  }))
  return { type: 'service', key, namespace, name, ports, publishNotReady }
}

function decodeWorkload(key: ResourceKey, message: WorkloadMessage): WorkloadResource {
  const { namespace, name, service } = message
  const ports = message.ports.map((port) => ({
    name: port.name,
    port: port.port,
    ...(port.appProtocol !== undefined && { appProtocol: port.appProtocol }),
  }))
  const endpoints = message.endpoints.map((endpoint) => ({
    address: endpoint.address,
    ready: endpoint.ready,
    ...(endpoint.zone !== undefined && { zone: endpoint.zone }),
    ...(endpoint.node !== undefined && { node: endpoint.node }),
    ...(endpoint.forZones.length > 0 && { forZones: endpoint.forZones }),
    ...(endpoint.forNodes.length > 0 && { forNodes: endpoint.forNodes }),
  }))
  return { type: 'workload', key, namespace, name, service, ports, endpoints }
}

function decodePolicy(key: ResourceKey, message: PolicyMessage): PolicyResource {
  const target = present(message.target, 'target')
  return {
    type: 'policy',
    key,
    ...decodeAge(message.age),
    policy: { namespace: message.namespace, name: message.name },
    section: oneOf(sections, message.section, 'section'),
    field: message.field,
    phase: oneOf(phases, message.phase, 'phase'),
    target: {
      ...decodeRef(target.object, 'target'),
      ...(target.section !== undefined && { section: target.section }),
      ...(target.inline !== undefined && { inline: target.inline }),
    },
    configVersion: message.configVersion,
    config: message.config,
    ...(message.unenforceable !== undefined && { unenforceable: message.unenforceable }),
    ...(message.secrets.length > 0 && {
      secrets: message.secrets.map((secret) => decodeSecretRef(secret, 'secret')),
    }),
    ...(message.dispensable === true && { dispensable: true }),
  }
}

function decodeResource({ key, kind }: ResourceMessage): Resource {
  switch (kind.case) {
    case 'listener':
      return decodeListener(key, kind.value)
    case 'route':
      return decodeRoute(
        key,
        kind.value,
        decodeRef(kind.value.route, 'route'),
        decodeAge(kind.value.age),
      )
    case 'stream':
      return decodeStream(
        key,
        kind.value,
        decodeRef(kind.value.route, 'route'),
        decodeAge(kind.value.age),
      )
    case 'backend':
      return decodeBackend(key, kind.value)
    case 'service':
      return decodeService(key, kind.value)
    case 'workload':
      return decodeWorkload(key, kind.value)
    case 'pool':
      return decodePool(key, kind.value)
    case 'pod':
      return decodePod(key, kind.value)
    case 'policy':
      return decodePolicy(key, kind.value)
    case 'secret':
      return decodeSecret(key, kind.value)
    default:
      throw new Unreadable('a resource of a type that this version does not know')
  }
}

interface Decoded {
  readonly resource?: VersionedResource
  readonly problem?: UnreadableResource
}

function decodeVersioned(message: VersionedMessage): Decoded {
  const { version, resource } = message
  const key = resource?.key ?? ''
  try {
    const known = present(resource, 'resource')
    const isPartial = hasUnknownFields(known)
    if (isPartial && mayProtect(known)) throw new Unreadable(unknownField)
    const decoded = { version, resource: decodeResource(known) }
    if (!isPartial) return { resource: decoded }
    const code = 'resource_partly_known'
    return { resource: decoded, problem: { key, version, code, message: unknownField } }
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    const problem = { key, version, code: 'resource_unreadable', message: error.message } as const
    const closed = resource && closedPolicy(resource, error.message)
    return closed === undefined ? { problem } : { problem, resource: { version, resource: closed } }
  }
}

const unknownField = 'it has a field that this version does not know'

/** Would it open something to pass over a field? */
function mayProtect({ kind }: ResourceMessage): boolean {
  if (kind.case === 'listener') return kind.value.tls !== undefined
  return kind.case === 'policy' && kind.value.dispensable !== true
}

/**
 * What stands for a policy that cannot be read: nothing passes where it applies. Undefined where not
 * even that can be told.
 */
function closedPolicy({ key, kind }: ResourceMessage, why: string): PolicyResource | undefined {
  if (kind.case !== 'policy' || kind.value.target?.object === undefined) return undefined
  const { namespace, name, field, target, configVersion, age } = kind.value
  return {
    type: 'policy',
    key,
    created: Number(age?.created ?? 0),
    order: Number(age?.order ?? 0),
    policy: { namespace, name },
    section: sections.find((section) => section === kind.value.section) ?? 'traffic',
    field,
    phase: phases.find((phase) => phase === kind.value.phase) ?? 'PostRouting',
    target: {
      ...decodeRef(target.object, 'target'),
      ...(target.section !== undefined && { section: target.section }),
      ...(target.inline !== undefined && { inline: target.inline }),
    },
    configVersion,
    config: '{}',
    unenforceable: `this proxy cannot read it: ${why}`,
  }
}

/**
 * Reads a `sluice.resource.v1.Delta` message. Throws where the bytes are not one; what is one but
 * holds resources that cannot be read, or not wholly, comes back with them in `unreadable`.
 */
export function decodeDelta(bytes: Uint8Array): DecodedDelta {
  const message = fromBinary(DeltaSchema, bytes)
  const upserted: VersionedResource[] = []
  const unreadable: UnreadableResource[] = []
  for (const versioned of message.upserted) {
    const { resource, problem } = decodeVersioned(versioned)
    if (resource !== undefined) upserted.push(resource)
    if (problem !== undefined) unreadable.push(problem)
  }
  return { sequence: Number(message.sequence), upserted, removed: message.removed, unreadable }
}
