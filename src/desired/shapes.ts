/**
 * The parts of specs that derivations read. Objects were validated at the edge, so these are plain
 * views, and a field that may be absent in a valid object is optional here.
 */
import type { LabelSelector } from '../base/label-selector.ts'
import type { ObjectRef } from '../model/names.ts'
import type { SecretEntry } from '../model/references.ts'
import type { ObservedObject } from './object-state.ts'

export { type LabelSelector, matchesSelector } from '../base/label-selector.ts'

export const gatewayGroup = 'gateway.networking.k8s.io'
export const ownGroup = 'sluice.dev'
export const inferenceGroup = 'inference.networking.k8s.io'
export const controllerName = 'sluice.dev/gateway-controller'
/** The class that exists without anybody creating it. */
export const defaultClassName = 'agentgateway'

export interface AllowedNamespaces {
  readonly from?: 'Same' | 'All' | 'Selector' | 'None'
  readonly selector?: LabelSelector
}

export interface SecretObjectRef {
  readonly group?: string
  readonly kind?: string
  readonly namespace?: string
  readonly name: string
}

/** What the log has of a Secret in place of its values. */
export interface SecretFacts {
  readonly entries: Readonly<Record<string, SecretEntryFacts>>
}

export type SecretEntryFacts = SecretEntry

export interface ListenerTlsSpec {
  readonly mode?: 'Terminate' | 'Passthrough'
  readonly certificateRefs?: readonly SecretObjectRef[]
  readonly options?: Readonly<Record<string, string>>
}

interface ClientTlsSpec {
  readonly validation?: {
    readonly mode?: 'AllowValidOnly' | 'AllowInsecureFallback'
    readonly caCertificateRefs: readonly SecretObjectRef[]
  }
}

/** What clients must prove: by default, and in its place on single ports. */
export interface FrontendTlsSpec {
  readonly default?: ClientTlsSpec
  readonly perPort?: readonly { readonly port: number; readonly tls: ClientTlsSpec }[]
}

export interface ListenerSpec {
  readonly name: string
  readonly port: number
  readonly protocol: string
  readonly hostname?: string
  readonly tls?: ListenerTlsSpec
  readonly allowedRoutes?: {
    readonly namespaces?: AllowedNamespaces
    readonly kinds?: readonly { readonly group?: string; readonly kind: string }[]
  }
}

export interface GatewayClassSpec {
  readonly controllerName: string
  readonly parametersRef?: ParametersRef
}

export interface ParametersRef {
  readonly group: string
  readonly kind: string
  readonly name: string
  readonly namespace?: string
}

export interface GatewaySpec {
  readonly gatewayClassName: string
  readonly listeners?: readonly ListenerSpec[]
  readonly addresses?: readonly { readonly type?: string; readonly value?: string }[]
  readonly allowedListeners?: { readonly namespaces?: AllowedNamespaces }
  readonly infrastructure?: {
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly parametersRef?: ParametersRef
  }
  readonly tls?: {
    readonly frontend?: FrontendTlsSpec
    readonly backend?: { readonly clientCertificateRef?: SecretObjectRef }
  }
  readonly defaultScope?: unknown
}

export interface ListenerSetSpec {
  readonly parentRef: ParentRef
  readonly listeners?: readonly ListenerSpec[]
}

export interface ParentRef {
  readonly group?: string
  readonly kind?: string
  readonly namespace?: string
  readonly name: string
  readonly sectionName?: string
  readonly port?: number
}

export interface BackendRef {
  readonly group?: string
  readonly kind?: string
  readonly namespace?: string
  readonly name: string
  readonly port?: number
  readonly weight?: number
  readonly filters?: readonly FilterSpec[]
}

export interface NamedMatchSpec {
  readonly type?: 'Exact' | 'RegularExpression'
  readonly name: string
  readonly value: string
}

export interface HttpMatchSpec {
  readonly path?: {
    readonly type?: 'Exact' | 'PathPrefix' | 'RegularExpression'
    readonly value?: string
  }
  readonly method?: string
  readonly headers?: readonly NamedMatchSpec[]
  readonly queryParams?: readonly NamedMatchSpec[]
}

export interface HeaderFilterSpec {
  readonly set?: readonly { readonly name: string; readonly value: string }[]
  readonly add?: readonly { readonly name: string; readonly value: string }[]
  readonly remove?: readonly string[]
}

export interface PathModifierSpec {
  readonly type: 'ReplaceFullPath' | 'ReplacePrefixMatch'
  readonly replaceFullPath?: string
  readonly replacePrefixMatch?: string
}

export interface FilterSpec {
  readonly type: string
  readonly requestHeaderModifier?: HeaderFilterSpec
  readonly responseHeaderModifier?: HeaderFilterSpec
  readonly requestRedirect?: {
    readonly scheme?: string
    readonly hostname?: string
    readonly path?: PathModifierSpec
    readonly port?: number
    readonly statusCode?: number
  }
  readonly urlRewrite?: { readonly hostname?: string; readonly path?: PathModifierSpec }
  readonly cors?: unknown
  readonly externalAuth?: { readonly backendRef: BackendRef }
  readonly requestMirror?: {
    readonly backendRef: BackendRef
    readonly percent?: number
    readonly fraction?: { readonly numerator: number; readonly denominator?: number }
  }
}

export interface SessionPersistenceSpec {
  readonly sessionName?: string
  readonly absoluteTimeout?: string
  readonly type?: 'Cookie' | 'Header'
  readonly cookieConfig?: { readonly lifetimeType?: 'Permanent' | 'Session' }
}

export interface HttpRuleSpec {
  readonly name?: string
  readonly matches?: readonly HttpMatchSpec[]
  readonly filters?: readonly FilterSpec[]
  readonly backendRefs?: readonly BackendRef[]
  readonly timeouts?: { readonly request?: string; readonly backendRequest?: string }
  readonly retry?: unknown
  readonly sessionPersistence?: SessionPersistenceSpec
}

/** Service and method of a gRPC call. */
export interface GrpcMethodSpec {
  readonly type?: 'Exact' | 'RegularExpression'
  readonly service?: string
  readonly method?: string
}

export interface GrpcRuleSpec extends Omit<HttpRuleSpec, 'matches'> {
  readonly matches?: readonly {
    readonly method?: GrpcMethodSpec
    readonly headers?: readonly NamedMatchSpec[]
  }[]
}

/** A GRPCRoute: what its rules match is its own, all else is as in other routes of requests. */
export interface GrpcRouteSpec extends Omit<RouteSpec, 'rules'> {
  readonly rules?: readonly GrpcRuleSpec[]
}

export interface RouteSpec {
  readonly parentRefs?: readonly ParentRef[]
  readonly hostnames?: readonly string[]
  readonly rules?: readonly HttpRuleSpec[]
  readonly useDefaultGateways?: unknown
}

export interface ReferenceGrantSpec {
  readonly from: readonly {
    readonly group: string
    readonly kind: string
    readonly namespace: string
  }[]
  readonly to: readonly { readonly group: string; readonly kind: string; readonly name?: string }[]
}

export interface ServiceSpec {
  readonly type?: string
  readonly publishNotReadyAddresses?: boolean
  readonly ports?: readonly {
    readonly name?: string
    readonly port: number
    readonly targetPort?: number | string
    readonly protocol?: string
    readonly appProtocol?: string
  }[]
}

export interface InferencePoolSpec {
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> }
  readonly targetPorts: readonly { readonly number: number }[]
  readonly appProtocol?: string
  readonly endpointPickerRef?: {
    readonly group?: string
    readonly kind?: string
    readonly name: string
    readonly port?: { readonly number: number }
    readonly failureMode?: 'FailOpen' | 'FailClose'
  }
}

/** What the log has of a Pod. */
export interface PodFields {
  readonly facts?: { readonly address?: string; readonly ready: boolean }
}

/** EndpointSlice has no spec: these are its top-level fields. */
export interface EndpointSliceFields {
  readonly addressType?: string
  readonly ports?: readonly {
    readonly name?: string
    readonly port?: number
    readonly protocol?: string
    readonly appProtocol?: string
  }[]
  readonly endpoints?: readonly {
    readonly addresses?: readonly string[]
    readonly conditions?: {
      readonly ready?: boolean
      readonly serving?: boolean
      readonly terminating?: boolean
    }
    readonly zone?: string
    readonly nodeName?: string
    readonly hints?: {
      readonly forZones?: readonly { readonly name: string }[]
      readonly forNodes?: readonly { readonly name: string }[]
    }
  }[]
}

export interface LlmProviderSpec {
  readonly host?: string
  readonly port?: number
  readonly path?: string
  /** Exactly one vendor is there; its fields are those of ProviderConfig. */
  readonly [vendor: string]: unknown
}

export interface NamedProviderSpec extends LlmProviderSpec {
  readonly name: string
  readonly policies?: Readonly<Record<string, unknown>>
}

export interface AiBackendSpec {
  readonly provider?: LlmProviderSpec
  readonly groups?: readonly { readonly providers: readonly NamedProviderSpec[] }[]
}

export interface McpSelectorSpec {
  readonly namespaces?: LabelSelector
  readonly services?: LabelSelector
}

export interface McpBackendSpec {
  /** Each has exactly one of selector and static. */
  readonly targets?: readonly {
    readonly name: string
    readonly selector?: McpSelectorSpec
    readonly static?: {
      readonly host: string
      readonly port: number
      readonly path?: string
      readonly protocol?: 'StreamableHTTP' | 'SSE'
      readonly policies?: Readonly<Record<string, unknown>>
    }
  }[]
  readonly sessionRouting?: 'Stateful' | 'Stateless'
}

export interface BackendSpec {
  readonly static?: { readonly host: string; readonly port: number }
  readonly dynamicForwardProxy?: object
  readonly ai?: AiBackendSpec
  readonly mcp?: McpBackendSpec
  readonly policies?: Readonly<Record<string, unknown>>
}

export interface PolicyTargetRef {
  readonly group: string
  readonly kind: string
  readonly name: string
  readonly sectionName?: string
}

export interface PolicySpec {
  readonly targetRefs?: readonly PolicyTargetRef[]
  readonly targetSelectors?: readonly {
    readonly group: string
    readonly kind: string
    readonly matchLabels: Readonly<Record<string, string>>
    readonly sectionName?: string
  }[]
  readonly frontend?: Readonly<Record<string, unknown>>
  readonly traffic?: Readonly<Record<string, unknown>> & { readonly phase?: string }
  readonly backend?: Readonly<Record<string, unknown>>
}

export interface BackendTlsPolicySpec {
  readonly targetRefs: readonly PolicyTargetRef[]
  readonly validation: {
    readonly caCertificateRefs?: readonly {
      readonly group: string
      readonly kind: string
      readonly name: string
    }[]
    readonly wellKnownCACertificates?: string
    readonly hostname: string
    readonly subjectAltNames?: readonly { readonly hostname?: string; readonly uri?: string }[]
  }
  readonly options?: Readonly<Record<string, string>>
}

/** The Gateway that a ListenerSet joins; undefined where its parent is of another kind. */
export function gatewayOfSet(namespace: string, spec: ListenerSetSpec): ObjectRef | undefined {
  const { group = gatewayGroup, kind = 'Gateway', name } = spec.parentRef
  if (group !== gatewayGroup || kind !== 'Gateway') return undefined
  return { kind, namespace: spec.parentRef.namespace ?? namespace, name }
}

/** The spec of a validated object; an absent spec reads as an empty one. */
export function specOf<Spec>(object: ObservedObject): Spec {
  return (object.spec ?? {}) as Spec
}
