/**
 * The control-plane half of the contract of a backend kind that users write as a field of
 * GatewayBackend. Such a kind is one folder and one line in each of two lists: `definitions.ts` (what users
 * may write, and where it leads) and `registry.ts` (`BackendKind`: what proxies do with it).
 *
 * The folder declares the destination that proxies receive:
 *
 *   declare module '../../../ground/model/resources.ts' {
 *     interface Destinations { readonly static: { readonly host: string; readonly port: number } }
 *   }
 */
import type { LabelSelector } from '../../ground/model/label-selector.ts'
import type { ObservedLists } from '../../ground/model/mcp-lists.ts'
import type { ObjectName } from '../../ground/model/names.ts'
import type { BackendReference, ReferencedSecret } from '../../ground/model/references.ts'
import type { BackendTarget, Destinations } from '../../ground/model/resources.ts'
import type { Schema } from '../../ground/schema/field.ts'

export interface BackendDefinition<
  Field extends string = string,
  Spec = unknown,
  Type extends keyof Destinations = keyof Destinations,
> {
  /** The field of GatewayBackend's spec that selects this kind. */
  readonly field: Field
  /** Schema of the field. */
  readonly schema: Schema<Spec>
  /** One or two sentences for the reference pages. */
  readonly doc: string
  /** The `type` of its destination. */
  readonly type: Type
  /** Derives where requests to the backend go. Must be pure and read other objects only through `reader`. */
  derive(spec: Spec, reader: BackendReader): DerivedBackend<Type>
  /** Returns the address if all requests go to a single one; the control plane fetches key sets from it. */
  address?(spec: Spec): { readonly host: string; readonly port: number }
  /** Returns the parts that the user has declared in the spec. */
  parts?(spec: Spec): readonly BackendPart[]
  /** Returns true if other objects can add parts, so that a name that is unknown now may appear later. */
  hasOpenParts?(spec: Spec): boolean
  /** The field of `backend` in policies that applies only to this kind. */
  readonly policy?: BackendPolicyField
  /** Returns why the backend cannot receive connections of a route, or undefined if it can (the default). */
  streamProblem?(route: { readonly hasServerNames: boolean }): string | undefined
  /** Set if the kind itself chooses the endpoint of each request: why session persistence cannot. */
  readonly choosesEndpoints?: string
}

interface BackendPolicyField {
  readonly field: string
  /** True if the field also works on Services. */
  readonly worksOnServices: boolean
}

/** A part that policies may name by `sectionName`, and that may have policies of its own. */
export interface BackendPart {
  readonly section: string
  /** Path of its policies below the field of the kind, such as `targets[0].static.policies`. */
  readonly path: string
  readonly policies: Readonly<Record<string, unknown>> | undefined
}

export interface DerivedBackend<Type extends keyof Destinations = keyof Destinations> {
  readonly destination: Destinations[Type]
  /** Notes for users about a backend that is served nevertheless. */
  readonly notes?: readonly string[]
  /** Problems for users, with which the backend is not accepted. What they do not concern is served. */
  readonly problems?: readonly string[]
  /** Further conditions of the object. */
  readonly conditions?: readonly DerivedCondition[]
  /** Parts and objects behind the backend, in addition to those parts that the user has declared. */
  readonly found?: FoundParts
}

interface DerivedCondition {
  readonly type: string
  readonly isTrue: boolean
  readonly reason: string
  readonly message: string
}

interface FoundParts {
  /** Names that policies may give to parts. */
  readonly sections: readonly string[]
  /** Services behind the backend, which policies may target. */
  readonly services: readonly ObjectName[]
  /** InferencePools behind the backend whose pickers are used, which policies may target, too. */
  readonly pools?: readonly ObjectName[]
}

/** Reads other objects. The backend is derived again if an object changes that was read. */
export interface BackendReader {
  /**
   * Services by namespace and name. If `namespaces` is omitted, only those in the namespace of the
   * backend.
   */
  services(selector: ServiceSelector): readonly FoundService[]
  /** Reads a JSON or YAML document in a ConfigMap of the backend's namespace. Returns a text if that fails. */
  document(configMap: string, key: string): { readonly value: unknown } | string
  /** Returns the latest document of a target's server, which the control plane fetches regularly. */
  fetchedDocument(request: ServedDocument): FetchedDocument
  /** Finds a Secret in the backend's namespace. */
  secret(name: string): ReferencedSecret | undefined
  /** The settings that let Gateways run commands; empty if none does. */
  stdioSettings(): readonly StdioSetting[]
  /** Resolves a reference to servers of models: a Service, or an InferencePool. */
  modelServer(reference: BackendReference): ResolvedServer
  /** What the MCP servers of the backend list; undefined if no proxy has reported it. */
  observedLists(): ObservedLists | undefined
}

export interface ServedDocument {
  /** Section name of the target, whose policies apply to the request. */
  readonly section: string
  readonly host: string
  readonly port: number
  /** Path with a leading slash. */
  readonly path: string
  /** Interval between fetches in milliseconds. */
  readonly cacheMs: number
  /** Returns why the target cannot use a document; undefined if it can. A document that cannot be used is not recorded. */
  readonly problemOf: (document: unknown) => string | undefined
}

export interface FetchedDocument {
  /** The last usable document; undefined if there was none. */
  readonly value: unknown
  /** Address of the document, such as `api.example.com:443/openapi.json`. */
  readonly origin: string
  /** Why the last fetch failed; undefined if it succeeded, or if there was none yet. */
  readonly problem: string | undefined
  /** True if nothing fetches documents, such as when manifests are validated. */
  readonly isPending: boolean
}

interface StdioSetting {
  /** The setting that enables commands, such as `spec.stdio of GatewayParameters default/small`. */
  readonly by: string
  /** Why commands have network access; undefined if they have none. */
  readonly network?: string
}

export interface ResolvedServer {
  readonly target: Exclude<BackendTarget, { readonly type: 'backend' }>
  /** Why it cannot be reached; undefined if it can. */
  readonly problem: string | undefined
}

interface ServiceSelector {
  readonly namespaces?: LabelSelector
  readonly services?: LabelSelector
}

export interface FoundService extends ObjectName {
  readonly annotations: Readonly<Record<string, string>>
  /** Omitted if no version of the Service is valid. */
  readonly spec?: { readonly type?: string; readonly ports?: readonly FoundPort[] }
}

export interface FoundPort {
  readonly name?: string
  readonly port: number
  readonly protocol?: string
  readonly appProtocol?: string
}

/** Keeps the literal field and the type of the spec. */
export function defineBackend<
  const Field extends string,
  Spec,
  const Type extends keyof Destinations,
>(definition: BackendDefinition<Field, Spec, Type>): BackendDefinition<Field, Spec, Type> {
  return definition
}
