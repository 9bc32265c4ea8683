/**
 * The desired state, as it is digested, compared, replayed and sent to proxies. One resource is one
 * thing that a user wrote: a listener, a route rule, a policy section for one target, an EndpointSlice.
 * Resources refer to their parents by key. They are not merged here, so that a change of one field
 * changes only one small resource.
 */

import type { ServiceTarget } from './destinations.ts'
import type { PodResource, PoolResource } from './inference-pools.ts'
import { sessionKeyRef } from './mcp-targets.ts'
import type { Age, ObjectName, ObjectRef } from './names.ts'
import type { SecretRef } from './secret-ref.ts'

export type { SecretRef } from './secret-ref.ts'

/** Unique among all resources; begins with the resource's type and a slash. */
export type ResourceKey = string

export type Protocol = 'HTTP' | 'HTTPS' | 'TLS' | 'TCP' | 'UDP'

/** A certificate chain and its private key, both in PEM. */
export interface CertificateRef {
  readonly certificate: SecretRef
  readonly privateKey: SecretRef
}

/** TLS settings of a listener that terminates TLS; a TLS listener without them passes TLS through. */
export interface ListenerTls {
  /** In the order of the listener's certificateRefs. If the list is empty, every handshake fails. */
  readonly certificates: readonly CertificateRef[]
  /** If omitted, clients need no certificate. */
  readonly clients?: ClientValidation
}

/** CA certificates. They are public, but some users keep them in a Secret. */
export type Authority = { readonly pem: string } | { readonly secret: SecretRef }

/** How certificates of clients are verified. */
export interface ClientValidation {
  /** If true, a handshake without a valid client certificate fails; if false, it still succeeds. */
  readonly required: boolean
  /** Authorities that may have issued a client's certificate. At least one. */
  readonly authorities: readonly Authority[]
}

/** A listener of a Gateway, or an entry of a ListenerSet. Key `listener/<kind>/<ns>/<name>/<section>`. */
export interface ListenerResource {
  readonly type: 'listener'
  readonly key: ResourceKey
  readonly gateway: ObjectName
  /** The object whose spec has the listener: the Gateway, or a ListenerSet attached to it. */
  readonly owner: ObjectRef
  readonly section: string
  /** From 1 to 65535. */
  readonly port: number
  readonly protocol: Protocol
  /** An exact hostname, `*.suffix`, or empty for all hosts. In lower case. */
  readonly hostname: string
  /** Set if and only if the listener terminates TLS: protocol HTTPS, or TLS in mode Terminate. */
  readonly tls?: ListenerTls
}

type StringMatchType = 'Exact' | 'RegularExpression'

export interface NamedMatch {
  readonly name: string
  readonly type: StringMatchType
  readonly value: string
}

export interface PathMatch {
  readonly type: 'Exact' | 'PathPrefix' | 'RegularExpression'
  readonly value: string
}

/** Matches requests that meet all of these conditions. */
export interface RouteMatch {
  readonly path: PathMatch
  readonly method?: string
  readonly headers: readonly NamedMatch[]
  readonly query: readonly NamedMatch[]
}

export interface HeaderValue {
  readonly name: string
  /** Empty if the value is a secret. */
  readonly value: string
  /** Set if the value is a credential that the log does not have. */
  readonly secret?: SecretRef
}

/** A Gateway API HTTPHeaderFilter: fields to set, add and remove. Names are case-insensitive. */
export interface HeaderChanges {
  readonly set: readonly HeaderValue[]
  readonly add: readonly HeaderValue[]
  readonly remove: readonly string[]
}

export interface PathModifier {
  readonly type: 'ReplaceFullPath' | 'ReplacePrefixMatch'
  readonly value: string
}

export type RouteFilter =
  | { readonly type: 'requestHeaders'; readonly changes: HeaderChanges }
  | { readonly type: 'responseHeaders'; readonly changes: HeaderChanges }
  | {
      readonly type: 'redirect'
      readonly scheme?: string
      readonly hostname?: string
      readonly path?: PathModifier
      readonly port?: number
      readonly statusCode: number
    }
  | { readonly type: 'rewrite'; readonly hostname?: string; readonly path?: PathModifier }
  | {
      readonly type: 'mirror'
      readonly target: BackendTarget
      /** The fraction of requests that is mirrored is numerator / denominator. */
      readonly numerator: number
      readonly denominator: number
    }

/** The target of a weighted reference. An invalid target keeps its weight; its requests fail with 500. */
export type BackendTarget = DirectTarget | ({ readonly type: 'pool' } & ObjectName)

/** A target that can be called without an endpoint picker. */
export type DirectTarget =
  | ServiceTarget
  | ({ readonly type: 'backend' } & ObjectName)
  | { readonly type: 'invalid'; readonly reason: string; readonly message: string }

/** A weighted backend of a stream route. Connections and datagrams to an invalid target are refused. */
export interface StreamBackend {
  /** From 0 to 1000000; a backend with weight 0 gets no traffic. */
  readonly weight: number
  readonly target: BackendTarget
}

export interface WeightedBackend extends StreamBackend {
  readonly filters: readonly RouteFilter[]
}

/** A listener that serves a route, and the hostnames for which it does; an empty hostname is any host. */
export interface Attachment {
  readonly listener: ResourceKey
  readonly hostnames: readonly string[]
}

/** Requests of a session go to the endpoint that served its first one (Gateway API, SessionPersistence). */
export interface SessionPersistence {
  readonly carrier: 'Cookie' | 'Header'
  /** Name of the cookie or header field. Header names are in lower case. */
  readonly name: string
  /** Milliseconds after the session's start at which it ends. If omitted, it does not end. */
  readonly absoluteTimeoutMs?: number
  /** If true, the cookie lasts as long as the session; if false, until the client is closed. */
  readonly isPermanent: boolean
}

/** A rule of another HTTPRoute that delegates requests. */
export interface DelegatedFrom {
  readonly route: ObjectRef
  readonly ruleIndex: number
  readonly ruleName?: string
}

/**
 * One rule of a route. Key `route/<kind>/<ns>/<name>/<rule index>`, followed by `@<kind>/<ns>/<name>/<rule index>` for
 * each rule that delegates to it.
 */
export interface RouteResource extends Age {
  readonly type: 'route'
  readonly key: ResourceKey
  readonly route: ObjectRef
  readonly ruleIndex: number
  readonly ruleName?: string
  /** The rules that delegate requests to this one, from the route that is attached to the listeners. */
  readonly delegatedFrom?: readonly DelegatedFrom[]
  readonly attachments: readonly Attachment[]
  readonly matches: readonly RouteMatch[]
  readonly filters: readonly RouteFilter[]
  readonly backends: readonly WeightedBackend[]
  /** Timeout of a request including retries and body, in milliseconds; no limit if 0 or omitted. */
  readonly requestTimeoutMs?: number
  /** Timeout of one attempt, in milliseconds; no limit if 0 or omitted. */
  readonly backendTimeoutMs?: number
  readonly session?: SessionPersistence
  /** Set if the rule cannot be applied as written. All requests that match it fail with 500. */
  readonly unusable?: string
}

/** The rule of a TLSRoute, TCPRoute or UDPRoute. Key `stream/<kind>/<ns>/<name>`. */
export interface StreamResource extends Age {
  readonly type: 'stream'
  readonly key: ResourceKey
  readonly route: ObjectRef
  readonly ruleName?: string
  /** Hostnames are compared to the SNI of the handshake; an empty one also matches if there is no SNI. */
  readonly attachments: readonly Attachment[]
  readonly backends: readonly StreamBackend[]
}

/** Where requests to a GatewayBackend go, by type. Each type of backend adds its own entry. */
export interface Destinations {
  readonly unsupported: { readonly message: string }
}

export type Destination = {
  [Type in keyof Destinations]: { readonly type: Type } & Destinations[Type]
}[keyof Destinations]

/** A GatewayBackend. Key `backend/<ns>/<name>`. */
export interface BackendResource extends ObjectName {
  readonly type: 'backend'
  readonly key: ResourceKey
  readonly destination: Destination
}

export interface ServicePort {
  readonly name: string
  readonly port: number
  /** Transport protocol. If omitted, TCP. A TCP port and a UDP port may have the same number. */
  readonly protocol?: 'UDP'
  /** Port of the Pods if the Service gives a number. EndpointSlices have the actual port. */
  readonly targetPort?: number
  readonly appProtocol?: string
}

/** A Service. Key `service/<ns>/<name>`. */
export interface ServiceResource extends ObjectName {
  readonly type: 'service'
  readonly key: ResourceKey
  readonly ports: readonly ServicePort[]
  /** Sends requests to endpoints that are not ready, too. */
  readonly publishNotReady: boolean
}

export interface Endpoint {
  readonly address: string
  readonly ready: boolean
  /** Set if the endpoint is terminating but still serves. It is used while the Service has no ready endpoint. */
  readonly serving?: boolean
  readonly zone?: string
  readonly node?: string
  /** Zones that the endpoint should serve (EndpointSlice hints). */
  readonly forZones?: readonly string[]
  /** Nodes that the endpoint should serve (EndpointSlice hints). */
  readonly forNodes?: readonly string[]
}

type EndpointPort = Pick<ServicePort, 'name' | 'port' | 'appProtocol'>

/** One EndpointSlice. Key `workload/<ns>/<slice>`. */
export interface WorkloadResource extends ObjectName {
  readonly type: 'workload'
  readonly key: ResourceKey
  /** Name of the Service in the same namespace. */
  readonly service: string
  readonly ports: readonly EndpointPort[]
  readonly endpoints: readonly Endpoint[]
}

export const policySections = ['frontend', 'traffic', 'backend'] as const
export type PolicySection = (typeof policySections)[number]
export type PolicyPhase = 'PreRouting' | 'PostRouting'

/** The target of a policy. `section` is the name of a listener, entry, rule, port, provider or MCP target. */
export interface PolicyTarget extends ObjectRef {
  readonly section?: string
  /** Set for policies in the target itself (GatewayBackend.spec.policies), which override all targetRefs. */
  readonly inline?: boolean
}

/**
 * One field of one section of a policy for one target, before merging.
 * Key `policy/<section>/<ns>/<name>/<field>/<target>`, with the kind before the section unless it is GatewayPolicy or the
 * policy is inline (`policy-kind.ts`).
 */
export interface PolicyResource extends Age {
  readonly type: 'policy'
  readonly key: ResourceKey
  readonly policy: ObjectName
  readonly section: PolicySection
  readonly field: string
  readonly phase: PolicyPhase
  readonly target: PolicyTarget
  /** Version of the format of `config`. A proxy that does not know it rejects covered requests. */
  readonly configVersion: number
  /** The compiled policy as canonical JSON. */
  readonly config: string
  /** The Secret entries whose digests `config` contains. */
  readonly secrets?: readonly SecretRef[]
  /** Set if the policy cannot be enforced. The requests that it applies to fail with 500. */
  readonly unenforceable?: string
  /** Set if it is safe to ignore the policy: a proxy that does not know it reports that and ignores it. */
  readonly dispensable?: true
}

/**
 * The value of an entry of a Secret. It is sent with the desired state but is not a part of it: what is
 * digested and recorded contains only SecretRefs. Key `secret/<digest>`; the version is the digest.
 */
export interface SecretResource {
  readonly type: 'secret'
  readonly key: ResourceKey
  readonly digest: string
  readonly value: Uint8Array
}

export type Resource =
  | ListenerResource
  | RouteResource
  | StreamResource
  | BackendResource
  | ServiceResource
  | WorkloadResource
  | PolicyResource
  | PoolResource
  | PodResource
  | SecretResource

export type ResourceType = Resource['type']

/** A resource as it is published. `version` is a hash of its content. */
export interface VersionedResource {
  readonly version: string
  readonly resource: Resource
}

/** One published set of changes; `sequence` is the position in the log that it results from. */
export interface DesiredDelta {
  readonly sequence: number
  readonly upserted: readonly VersionedResource[]
  readonly removed: readonly ResourceKey[]
}

/** Sessions of MCP clients, and what providers of models store, have ids that are sealed. */
const sealsIds = ({ destination: { type } }: BackendResource): boolean =>
  type === 'mcp' || type === 'ai'

const secretsOfTargets = ({ destination }: BackendResource): readonly SecretRef[] =>
  destination.type === 'mcp' ? destination.targets.flatMap(({ secrets = [] }) => secrets) : []

/** References to the secret values that a resource needs. */
export function secretRefsOf(resource: Resource): readonly SecretRef[] {
  if (resource.type === 'policy') return resource.secrets ?? []
  if (resource.type === 'backend' && sealsIds(resource)) {
    return [sessionKeyRef, ...secretsOfTargets(resource)]
  }
  if (resource.type === 'route') return secretRefsOfRoute(resource)
  if (resource.type !== 'listener') return []
  const certificates = resource.tls?.certificates ?? []
  const authorities = resource.tls?.clients?.authorities ?? []
  return [
    ...certificates.flatMap(({ certificate, privateKey }) => [certificate, privateKey]),
    ...authorities.flatMap((authority) => ('secret' in authority ? [authority.secret] : [])),
  ]
}

function secretRefsOfRoute({ filters, backends, session }: RouteResource): readonly SecretRef[] {
  const ofSession = session === undefined ? [] : [sessionKeyRef]
  const lists = [filters, ...backends.map((backend) => backend.filters)]
  return [...ofSession, ...lists.flatMap(secretsOfFilters)]
}

/** The secrets that header changes refer to. */
export function secretsOfHeaders(changes: HeaderChanges | undefined): SecretRef[] {
  if (changes === undefined) return []
  return [...changes.set, ...changes.add].flatMap(({ secret }) => secret ?? [])
}

/** The secrets that filters of a route refer to. */
export function secretsOfFilters(filters: readonly RouteFilter[]): SecretRef[] {
  return filters.flatMap((filter) => ('changes' in filter ? secretsOfHeaders(filter.changes) : []))
}

/** Key of the resource that holds a secret value. */
export function secretKey(digest: string): ResourceKey {
  return `secret/${digest}`
}

/** Makes the resource of a secret value. */
export function secretResource(digest: string, value: Uint8Array): VersionedResource {
  return { version: digest, resource: { type: 'secret', key: secretKey(digest), digest, value } }
}
