/**
 * The desired state: what is digested, compared, replayed and sent to proxies. One resource is one
 * thing that a user wrote (a listener, a route rule, a policy section and target, an EndpointSlice),
 * children point up to their parents by key, and nothing is merged here: a one-field edit changes
 * one small resource.
 */
import type { PodResource, PoolResource } from './inference-pools.ts'
import { type McpTarget, sessionKeyRef } from './mcp-targets.ts'
import type { ProviderGroup } from './model-providers.ts'
import type { Age, ObjectName, ObjectRef } from './names.ts'

/** Unique over all resources; begins with the resource's type and a slash. */
export type ResourceKey = string

export type Protocol = 'HTTP' | 'HTTPS' | 'TLS' | 'TCP' | 'UDP'

/** One entry of a Secret, by name and by the keyed digest of its value; never the value itself. */
export interface SecretRef {
  readonly namespace: string
  readonly name: string
  /** Entry in the Secret's data, such as `tls.key`. */
  readonly key: string
  readonly digest: string
}

/** A certificate chain and its private key, both in PEM. */
export interface CertificateRef {
  readonly certificate: SecretRef
  readonly privateKey: SecretRef
}

/** TLS that ends at a listener; its absence on a listener of protocol TLS is mode Passthrough. */
export interface ListenerTls {
  /** In the order of the listener's certificateRefs; where none is left, every handshake fails. */
  readonly certificates: readonly CertificateRef[]
  /** Absent where clients need not prove anything. */
  readonly clients?: ClientValidation
}

/** Certificates of authorities: public, and yet some keep them in a Secret. */
export type Authority = { readonly pem: string } | { readonly secret: SecretRef }

/** What clients must prove. */
export interface ClientValidation {
  /** Without a certificate that an authority vouches for the handshake fails; else it is ignored. */
  readonly required: boolean
  /** At least one. */
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
  /** 1..65535. */
  readonly port: number
  readonly protocol: Protocol
  /** Exact, `*.suffix`, or empty for every host. Lower case. */
  readonly hostname: string
  /** Present exactly where TLS ends here: on HTTPS, and on TLS in mode Terminate. */
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

/** All conditions must hold. */
export interface RouteMatch {
  readonly path: PathMatch
  readonly method?: string
  readonly headers: readonly NamedMatch[]
  readonly query: readonly NamedMatch[]
}

export interface HeaderValue {
  readonly name: string
  readonly value: string
}

/** Gateway API HTTPHeaderFilter: set, add and remove, names case-insensitive. */
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
      /** The share of requests that is mirrored: numerator of denominator. */
      readonly numerator: number
      readonly denominator: number
    }

/** Where a reference leads. An invalid one keeps its weight and answers 500 for its share. */
export type BackendTarget =
  | DirectTarget
  | { readonly type: 'pool'; readonly namespace: string; readonly name: string }

/** What can be called without asking anybody where. */
export type DirectTarget =
  | {
      readonly type: 'service'
      readonly namespace: string
      readonly name: string
      readonly port: number
    }
  | { readonly type: 'backend'; readonly namespace: string; readonly name: string }
  | { readonly type: 'invalid'; readonly reason: string; readonly message: string }

export interface WeightedBackend {
  /** 0..1000000; 0 gets no traffic. */
  readonly weight: number
  readonly target: BackendTarget
  readonly filters: readonly RouteFilter[]
}

/** A route is served on a listener for these hostnames; an empty string is every host. */
export interface Attachment {
  readonly listener: ResourceKey
  readonly hostnames: readonly string[]
}

/** Clients of a rule stay at the endpoint that served them first (Gateway API, SessionPersistence). */
export interface SessionPersistence {
  readonly carrier: 'Cookie' | 'Header'
  /** Of the cookie or of the header field; header names are in lower case. */
  readonly name: string
  /** Milliseconds from the beginning of a session; absent: it has no end. */
  readonly absoluteTimeoutMs?: number
  /** The client keeps the cookie for as long as the session lasts, not just until it is closed. */
  readonly isPermanent: boolean
}

/** One rule of a route. Key `route/<kind>/<ns>/<name>/<rule index>`. */
export interface RouteResource extends Age {
  readonly type: 'route'
  readonly key: ResourceKey
  readonly route: ObjectRef
  readonly ruleIndex: number
  readonly ruleName?: string
  readonly attachments: readonly Attachment[]
  readonly matches: readonly RouteMatch[]
  readonly filters: readonly RouteFilter[]
  readonly backends: readonly WeightedBackend[]
  /** Whole request including retries and body, in milliseconds; 0 or absent = no limit. */
  readonly requestTimeoutMs?: number
  /** One attempt, in milliseconds; 0 or absent = no limit. */
  readonly backendTimeoutMs?: number
  readonly session?: SessionPersistence
  /** Set where the rule cannot be honoured: every request it matches is answered 500. */
  readonly unusable?: string
}

/** A share of the connections or datagrams of a stream route. An invalid one is refused its share. */
export interface StreamBackend {
  /** 0..1000000; 0 gets no traffic. */
  readonly weight: number
  readonly target: BackendTarget
}

/** The rule of a TLSRoute, TCPRoute or UDPRoute. Key `stream/<kind>/<ns>/<name>`. */
export interface StreamResource extends Age {
  readonly type: 'stream'
  readonly key: ResourceKey
  readonly route: ObjectRef
  readonly ruleName?: string
  /** Hostnames are names of TLS handshakes; an empty string is every name, and none at all. */
  readonly attachments: readonly Attachment[]
  readonly backends: readonly StreamBackend[]
}

export type Destination =
  | { readonly type: 'static'; readonly host: string; readonly port: number }
  | { readonly type: 'dynamic' }
  /** Groups by priority. */
  | { readonly type: 'ai'; readonly groups: readonly ProviderGroup[] }
  /** Targets in the order in which they were written; empty where selectors match nothing. */
  | { readonly type: 'mcp'; readonly targets: readonly McpTarget[]; readonly isStateless: boolean }
  | { readonly type: 'unsupported'; readonly message: string }

/** A GatewayBackend. Key `backend/<ns>/<name>`. */
export interface BackendResource {
  readonly type: 'backend'
  readonly key: ResourceKey
  readonly namespace: string
  readonly name: string
  readonly destination: Destination
}

export interface ServicePort {
  readonly name: string
  readonly port: number
  /** Absent: TCP. One number may stand for a TCP port and for a UDP port. */
  readonly protocol?: 'UDP'
  /** Port number of the pods where it is a number; EndpointSlices carry the real one. */
  readonly targetPort?: number
  readonly appProtocol?: string
}

/** A Service. Key `service/<ns>/<name>`. */
export interface ServiceResource {
  readonly type: 'service'
  readonly key: ResourceKey
  readonly namespace: string
  readonly name: string
  readonly ports: readonly ServicePort[]
  /** Endpoints that are not ready serve as well. */
  readonly publishNotReady: boolean
}

export interface Endpoint {
  readonly address: string
  readonly ready: boolean
  readonly zone?: string
  readonly node?: string
  /** Zones and nodes that it should serve (EndpointSlice hints); absent where nobody said. */
  readonly forZones?: readonly string[]
  readonly forNodes?: readonly string[]
}

interface EndpointPort {
  readonly name: string
  readonly port: number
  readonly appProtocol?: string
}

/** One EndpointSlice. Key `workload/<ns>/<slice>`. */
export interface WorkloadResource {
  readonly type: 'workload'
  readonly key: ResourceKey
  readonly namespace: string
  readonly name: string
  /** Name of the Service in the same namespace. */
  readonly service: string
  readonly ports: readonly EndpointPort[]
  readonly endpoints: readonly Endpoint[]
}

export type PolicySection = 'frontend' | 'traffic' | 'backend'
export type PolicyPhase = 'PreRouting' | 'PostRouting'

/** What a policy points up to. `section` is a listener, entry, rule, port, provider or target name. */
export interface PolicyTarget extends ObjectRef {
  readonly section?: string
  /** Written inside the target itself (GatewayBackend.spec.policies): beats every targetRef. */
  readonly inline?: boolean
}

/**
 * One field of one section of one policy on one target, unmerged.
 * Key `policy/<section>/<ns>/<name>/<field>/<target>`.
 */
export interface PolicyResource extends Age {
  readonly type: 'policy'
  readonly key: ResourceKey
  readonly policy: ObjectName
  readonly section: PolicySection
  readonly field: string
  readonly phase: PolicyPhase
  readonly target: PolicyTarget
  /** Version of the shape of `config`; a proxy that does not know it fails closed. */
  readonly configVersion: number
  /** Canonical JSON of the compiled form. */
  readonly config: string
  /** Values that `config` names by their digests. */
  readonly secrets?: readonly SecretRef[]
  /** Set where the policy cannot be enforced: whatever it covers is answered 500. */
  readonly unenforceable?: string
  /** To leave it out opens nothing: a proxy that does not know it goes on without it, and says so. */
  readonly dispensable?: true
}

/**
 * The value of an entry of a Secret. It travels beside the desired state and is no part of it: what
 * is digested and recorded holds SecretRefs. Key `secret/<digest>`; the version is the digest, too.
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

/** A resource as it is published: `version` is a hash of its content. */
export interface VersionedResource {
  readonly version: string
  readonly resource: Resource
}

/** One published change set; `sequence` is the log position whose fold gave it. */
export interface DesiredDelta {
  readonly sequence: number
  readonly upserted: readonly VersionedResource[]
  readonly removed: readonly ResourceKey[]
}

/** Everything secret that a resource refers to. */
export function secretRefsOf(resource: Resource): readonly SecretRef[] {
  if (resource.type === 'policy') return resource.secrets ?? []
  if (resource.type === 'backend' && resource.destination.type === 'mcp') return [sessionKeyRef]
  if (resource.type === 'route' && resource.session !== undefined) return [sessionKeyRef]
  if (resource.type !== 'listener') return []
  const certificates = resource.tls?.certificates ?? []
  const authorities = resource.tls?.clients?.authorities ?? []
  return [
    ...certificates.flatMap(({ certificate, privateKey }) => [certificate, privateKey]),
    ...authorities.flatMap((authority) => ('secret' in authority ? [authority.secret] : [])),
  ]
}

/** Key of the resource that carries a value. */
export function secretKey(digest: string): ResourceKey {
  return `secret/${digest}`
}
