/**
 * Desired state to bytes. A resource is encoded once per version and its bytes are shared: change
 * sets and full states are strung together from the same pieces (a repeated field of protobuf is
 * nothing but its elements one after the other).
 */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import {
  type BackendSchema,
  type BackendTargetSchema,
  type ListenerTls_AuthoritySchema,
  type ListenerTlsSchema,
  type PolicySchema,
  ResourceSchema,
  type RouteFilterSchema,
  type RouteSchema,
  type StreamSchema,
  type WeightedBackendSchema,
} from '../../proto/gen/resource_pb.ts'
import type { McpTarget } from '../model/mcp-targets.ts'
import type { ModelProvider } from '../model/model-providers.ts'
import type { Age } from '../model/names.ts'
import type {
  Attachment,
  Authority,
  BackendResource,
  BackendTarget,
  DesiredDelta,
  Endpoint,
  HeaderChanges,
  ListenerTls,
  PolicyResource,
  Resource,
  ResourceKey,
  RouteFilter,
  RouteResource,
  StreamResource,
  VersionedResource,
  WeightedBackend,
} from '../model/resources.ts'
import { FieldWriter, fieldLength, numberLength, textLength } from './frames.ts'
import { podOf, poolOf } from './pools.ts'

/** Field numbers of Delta and Versioned in proto/resource.proto, which are put together by hand. */
const deltaField = { sequence: 1, upserted: 2, removed: 3 } as const
const versionedField = { version: 1, resource: 2 } as const

/** The bytes of one `Versioned` message; a piece of a Delta. */
export type EncodedResource = Uint8Array

const ageOf = (age: Age) => ({ created: BigInt(age.created), order: BigInt(age.order) })

const changesOf = (changes: HeaderChanges) => ({
  set: [...changes.set],
  add: [...changes.add],
  remove: [...changes.remove],
})

function targetOf(target: BackendTarget): MessageInitShape<typeof BackendTargetSchema> {
  switch (target.type) {
    case 'service': {
      const { namespace, name, port } = target
      return { kind: { case: 'service', value: { namespace, name, port } } }
    }
    case 'backend': {
      const { namespace, name } = target
      return { kind: { case: 'backend', value: { namespace, name } } }
    }
    case 'pool': {
      const { namespace, name } = target
      const value = { reason: 'UnsupportedValue', message: 'this proxy knows no InferencePools' }
      return { kind: { case: 'invalid', value }, pool: { namespace, name } }
    }
    case 'invalid': {
      const { reason, message } = target
      return { kind: { case: 'invalid', value: { reason, message } } }
    }
  }
}

function filterOf(filter: RouteFilter): MessageInitShape<typeof RouteFilterSchema> {
  switch (filter.type) {
    case 'requestHeaders':
      return { kind: { case: 'requestHeaders', value: changesOf(filter.changes) } }
    case 'responseHeaders':
      return { kind: { case: 'responseHeaders', value: changesOf(filter.changes) } }
    case 'redirect': {
      const { scheme, hostname, path, port, statusCode } = filter
      return { kind: { case: 'redirect', value: { scheme, hostname, path, port, statusCode } } }
    }
    case 'rewrite': {
      const { hostname, path } = filter
      return { kind: { case: 'rewrite', value: { hostname, path } } }
    }
    case 'mirror': {
      const { numerator, denominator } = filter
      const target = targetOf(filter.target)
      return { kind: { case: 'mirror', value: { target, numerator, denominator } } }
    }
  }
}

const weightedOf = (backend: WeightedBackend): MessageInitShape<typeof WeightedBackendSchema> => ({
  weight: backend.weight,
  target: targetOf(backend.target),
  filters: backend.filters.map(filterOf),
})

const attachmentsOf = (attachments: readonly Attachment[]) =>
  attachments.map(({ listener, hostnames }) => ({ listener, hostnames: [...hostnames] }))

const streamOf = (stream: StreamResource): MessageInitShape<typeof StreamSchema> => ({
  route: stream.route,
  age: ageOf(stream),
  ruleName: stream.ruleName,
  attachments: attachmentsOf(stream.attachments),
  backends: stream.backends.map(({ weight, target }) => ({ weight, target: targetOf(target) })),
})

const wide = (value: number | undefined) => (value === undefined ? undefined : BigInt(value))

const routeOf = (route: RouteResource): MessageInitShape<typeof RouteSchema> => ({
  route: route.route,
  age: ageOf(route),
  ruleIndex: route.ruleIndex,
  ruleName: route.ruleName,
  attachments: attachmentsOf(route.attachments),
  matches: route.matches.map(({ path, method, headers, query }) => ({
    path,
    method,
    headers: [...headers],
    query: [...query],
  })),
  filters: route.filters.map(filterOf),
  backends: route.backends.map(weightedOf),
  requestTimeoutMs: wide(route.requestTimeoutMs),
  backendTimeoutMs: wide(route.backendTimeoutMs),
  unusable: route.unusable,
  session: route.session && {
    ...route.session,
    absoluteTimeoutMs: wide(route.session.absoluteTimeoutMs),
  },
})

function providerOf({ config, ...provider }: ModelProvider) {
  return { ...provider, ...config }
}

function mcpTargetOf({ destination, sections, ...target }: McpTarget) {
  const { type, ...value } = destination
  return { ...target, sections: [...sections], destination: { case: type, value } }
}

function destinationOf(
  backend: BackendResource,
): MessageInitShape<typeof BackendSchema>['destination'] {
  const { destination } = backend
  switch (destination.type) {
    case 'static':
      return { case: 'static', value: { host: destination.host, port: destination.port } }
    case 'dynamic':
      return { case: 'dynamic', value: {} }
    case 'ai': {
      const groups = destination.groups.map((group) => ({ providers: group.map(providerOf) }))
      return { case: 'ai', value: { groups } }
    }
    case 'mcp': {
      const targets = destination.targets.map(mcpTargetOf)
      return { case: 'mcp', value: { targets, stateless: destination.isStateless } }
    }
    case 'unsupported':
      return { case: 'unsupported', value: { message: destination.message } }
  }
}

const policyOf = (policy: PolicyResource): MessageInitShape<typeof PolicySchema> => ({
  namespace: policy.policy.namespace,
  name: policy.policy.name,
  age: ageOf(policy),
  section: policy.section,
  field: policy.field,
  phase: policy.phase,
  target: {
    object: policy.target,
    section: policy.target.section,
    inline: policy.target.inline,
  },
  configVersion: policy.configVersion,
  config: policy.config,
  unenforceable: policy.unenforceable,
  secrets: policy.secrets === undefined ? [] : [...policy.secrets],
  dispensable: policy.dispensable,
})

const tlsOf = ({
  certificates,
  clients,
}: ListenerTls): MessageInitShape<typeof ListenerTlsSchema> => ({
  certificates: [...certificates],
  ...(clients && {
    clients: { required: clients.required, authorities: clients.authorities.map(authorityOf) },
  }),
})

const authorityOf = (
  authority: Authority,
): MessageInitShape<typeof ListenerTls_AuthoritySchema> => ({
  kind:
    'pem' in authority
      ? { case: 'pem', value: authority.pem }
      : { case: 'secret', value: authority.secret },
})

const endpointOf = ({ forZones = [], forNodes = [], ...endpoint }: Endpoint) => ({
  ...endpoint,
  forZones: [...forZones],
  forNodes: [...forNodes],
})

function kindOf(resource: Resource): MessageInitShape<typeof ResourceSchema>['kind'] {
  switch (resource.type) {
    case 'listener': {
      const { owner, section, port, protocol, hostname } = resource
      const { namespace: gatewayNamespace, name: gatewayName } = resource.gateway
      const tls = resource.tls && tlsOf(resource.tls)
      return {
        case: 'listener',
        value: { gatewayNamespace, gatewayName, owner, section, port, protocol, hostname, tls },
      }
    }
    case 'route':
      return { case: 'route', value: routeOf(resource) }
    case 'stream':
      return { case: 'stream', value: streamOf(resource) }
    case 'backend': {
      const { namespace, name } = resource
      return { case: 'backend', value: { namespace, name, destination: destinationOf(resource) } }
    }
    case 'service': {
      const { namespace, name, ports, publishNotReady } = resource
      return { case: 'service', value: { namespace, name, ports: [...ports], publishNotReady } }
    }
    case 'workload': {
      const { namespace, name, service, ports, endpoints } = resource
      return {
        case: 'workload',
        value: {
          namespace,
          name,
          service,
          ports: [...ports],
          endpoints: endpoints.map(endpointOf),
        },
      }
    }
    case 'pool':
      return { case: 'pool', value: poolOf(resource) }
    case 'pod':
      return { case: 'pod', value: podOf(resource) }
    case 'policy':
      return { case: 'policy', value: policyOf(resource) }
    case 'secret': {
      const { digest, value } = resource
      return { case: 'secret', value: { digest, value: Uint8Array.from(value) } }
    }
  }
}

/** The bytes of a `Resource` message, which say nothing of its version. */
export function encodeBody(resource: Resource): Uint8Array {
  const message = create(ResourceSchema, { key: resource.key, kind: kindOf(resource) })
  return toBinary(ResourceSchema, message)
}

const newBytes = (length: number): Uint8Array<ArrayBuffer> => new Uint8Array(length)

/** A `Versioned` message around the bytes of a `Resource` message, in memory of the caller's choice. */
export function assembleVersioned(
  version: string,
  body: Uint8Array,
  allocate: (length: number) => Uint8Array = newBytes,
): EncodedResource {
  const bytes = allocate(textLength(version) + fieldLength(body.length))
  const writer = new FieldWriter(bytes)
  writer.text(versionedField.version, version)
  writer.bytes(versionedField.resource, body)
  return bytes
}

/** One resource with its version as a `Versioned` message. */
export function encodeResource({ version, resource }: VersionedResource): EncodedResource {
  return assembleVersioned(version, encodeBody(resource))
}

/** A Delta from encoded resources. */
export function assembleDelta(
  sequence: number,
  upserted: Iterable<EncodedResource>,
  removed: Iterable<ResourceKey>,
): Uint8Array<ArrayBuffer> {
  return assembleIn(newBytes, sequence, [...upserted], [...removed])
}

/** The same in memory that threads can share. */
export function assembleSharedDelta(
  sequence: number,
  upserted: Iterable<EncodedResource>,
  removed: Iterable<ResourceKey>,
): Uint8Array<SharedArrayBuffer> {
  const allocate = (length: number) => new Uint8Array(new SharedArrayBuffer(length))
  return assembleIn(allocate, sequence, [...upserted], [...removed])
}

function assembleIn<Bytes extends Uint8Array>(
  allocate: (length: number) => Bytes,
  sequence: number,
  upserted: readonly EncodedResource[],
  removed: readonly ResourceKey[],
): Bytes {
  let length = sequence === 0 ? 0 : numberLength(sequence)
  for (const piece of upserted) length += upsertedLength(piece)
  for (const key of removed) length += textLength(key)
  const bytes = allocate(length)
  const writer = new FieldWriter(bytes)
  if (sequence !== 0) writer.number(deltaField.sequence, sequence)
  for (const piece of upserted) writeUpserted(writer, piece)
  for (const key of removed) writer.text(deltaField.removed, key)
  return bytes
}

/** What an encoded resource takes in a Delta. */
export const upsertedLength = (piece: EncodedResource): number => fieldLength(piece.length)

/** Adds a resource to the bytes of a Delta, which is nothing but its fields one after the other. */
export function writeUpserted(writer: FieldWriter, piece: EncodedResource): void {
  writer.bytes(deltaField.upserted, piece)
}

/** A change set as a `sluice.resource.v1.Delta` message. */
export function encodeDelta(delta: DesiredDelta): Uint8Array<ArrayBuffer> {
  return assembleDelta(delta.sequence, delta.upserted.map(encodeResource), delta.removed)
}
