/** The contract between the proxy and a kind of backends. */
import { GatewayError } from '../../../ground/errors/index.ts'
import type { RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { ClientKeys } from '../../../ground/exchange/forwarding.ts'
import type {
  BackendResource,
  Destination as BackendSettings,
  BackendTarget,
  DesiredDelta,
  Resource,
  ResourceType,
} from '../../../ground/model/resources.ts'
import type { Step } from '../../policies/define.ts'
import type { BackendAccess } from '../config/backend-access.ts'
import type { RulePlacement } from '../config/placement.ts'
import type { CompiledRule, NamedTarget } from '../config/rules.ts'
import type { CheckedBackend } from '../upstream/checked-backend.ts'
import type { Destination } from '../upstream/destination.ts'
import type { EndpointSet, UpstreamEndpoint } from '../upstream/endpoint.ts'
import type { RequestTraits } from '../upstream/http-version.ts'
import type { BackendCall } from './backend-call.ts'
import type { DestinationOptions, PolicyPlace } from './destinations.ts'
import type { ErrorWriter, LocalResponse } from './error-response.ts'
import type { RequestContext } from './request-context.ts'

/**
 * One kind of backends. If requests, mirrors, callouts and streams can all be sent to its backends, it has
 * `destination`. Otherwise it has `begin`, which makes a call for each request. All other members are
 * optional.
 */
export interface BackendKind {
  /** Values of `backend.type` and `backend.protocol` in expressions. */
  readonly type: Exclude<BackendSettings['type'], 'unsupported'> | 'service'
  readonly protocol: string
  /** Resolves a backend. Throws or rejects with a GatewayError if nothing can be sent to it. */
  destination?(
    placement: PolicyPlace,
    backend: NamedTarget,
    request: RequestTraits,
    options: DestinationOptions,
  ): Destination | Promise<Destination>
  /**
   * Returns what active health checks probe; undefined if the backend does not exist. Throws if nothing can be sent to
   * it. Backends of kinds without this method are not checked.
   */
  checked?(placement: PolicyPlace, backend: NamedTarget): CheckedBackend | undefined
  /** Whether the backend still has the endpoint of a UDP session; always true if omitted. */
  hasEndpoint?(backend: NamedTarget, endpoint: UpstreamEndpoint): boolean
  /** `access` has the policies if the request is for another backend, which sends it to this one. */
  begin?(context: RequestContext, backend: NamedTarget, access?: BackendAccess): BackendCall
  /** Returns the endpoints of a backend of a kind that has no `destination`; none if it does not exist. */
  endpoints?(backend: NamedTarget): EndpointSet
  /** What backends without `destination` can be used for. Part of error messages. */
  readonly onlyFor?: string
  /** Where clients may send keys; in Authorization only if omitted. */
  readonly clientKeys?: ClientKeys
  /** Header fields of a response with which a rate limit refuses a request. */
  readonly limitHeaders?: LocalResponse['headers']
  /** Returns a function that writes errors for requests without a call. */
  errorWriter?(
    context: RequestContext,
    placement: RulePlacement | undefined,
    backend: NamedTarget,
  ): ErrorWriter | undefined
  /** Finds the route of requests that belong to a backend of this kind although their path does not match it. */
  readonly rerouting?: Rerouting
  /**
   * Sets headers that name the message in the body, for policies and routes that read them. Returns a refusal
   * if they cannot name it. `mayJoin` is called for each of several messages with its headers set; if it is
   * omitted or returns false, they are refused. `rule` is that of the route if the route is not chosen yet.
   */
  nameMessage?(
    context: RequestContext,
    mayJoin?: () => boolean,
    rule?: CompiledRule,
  ): RespondVerdict | undefined | Promise<RespondVerdict | undefined>
  /**
   * Judges what a recorded request has used by the present configuration; undefined if that is not possible. Only
   * simulations call it, with the exchange of the record.
   */
  judgeUse?(context: RequestContext, use: RecordedUse): JudgedUse | undefined
  /** Types of resources that the kind stores, besides its GatewayBackends. */
  readonly resources?: readonly ResourceType[]
  /** Stores a resource of the kind; `old` is its previous version. */
  set?(resource: Resource, old: Resource | undefined): void
  remove?(resource: Resource): void
  /** Prepares a new backend for its first request, for example by resolving its host. */
  warmUp?(resource: BackendResource): void
  /** Called after each change set. */
  onConfigChange?(): void
  /** Ends streams to clients. Called when the process is about to stop. */
  stop?(): void
}

/** What a recorded request has used, by the fields of its record. */
export interface RecordedUse {
  readonly method: string
  readonly target: string
  readonly type: 'tool' | 'prompt'
  readonly name: string
  /** Digest of the version, if the server has listed it. */
  readonly digest: string | undefined
  /** Called if something reads the arguments, which are not recorded. */
  readonly onArguments: () => undefined
}

export interface JudgedUse {
  /** Undefined if nothing refuses it. `step` is undefined if no policy refuses. */
  readonly refusal: { readonly reason: string; readonly step: Step | undefined } | undefined
  /** Identifies all settings that may matter and were not judged. */
  readonly otherSettings: string
}

interface Rerouting {
  /** What the paths of such requests begin with. */
  readonly prefix: string
  reroute(context: RequestContext): void
}

type InvalidTarget = Extract<BackendTarget, { readonly type: 'invalid' }>

/** The kinds of backends of one data plane, by the type in their configuration. */
export class BackendKinds {
  readonly #kinds = new Map<string, BackendKind>()
  readonly #byResource = new Map<ResourceType, BackendKind>()
  /** GatewayBackends by `namespace/name`. */
  readonly #backends = new Map<string, BackendSettings>()
  readonly #reroutings: Rerouting[] = []
  /** Query parameters in which clients may send keys to any backend. */
  readonly #keyParameters = new Set<string>()

  add(type: string, kind: BackendKind): void {
    this.#kinds.set(type, kind)
    for (const resource of kind.resources ?? []) this.#byResource.set(resource, kind)
    if (kind.rerouting !== undefined) this.#reroutings.push(kind.rerouting)
    for (const name of kind.clientKeys?.parameters ?? []) this.#keyParameters.add(name)
  }

  all(): Iterable<BackendKind> {
    return this.#kinds.values()
  }

  /** Returns the kind of a backend; undefined if the backend does not exist or its kind is unknown. */
  of({ target, name }: NamedTarget): BackendKind | undefined {
    if (target.type !== 'backend') return this.#kinds.get(target.type)
    const found = this.#backends.get(name)
    return found && this.#kinds.get(found.type)
  }

  /**
   * Resolves a backendRef to a destination. Throws or rejects with `backend_invalid`,
   * `service_not_found`, `policy_unenforceable`, `no_endpoints`, `backend_unsupported`,
   * `destination_refused`, `overloaded` or `dns_failed`.
   */
  resolve(
    placement: PolicyPlace,
    named: NamedTarget,
    request: RequestTraits,
    options: DestinationOptions = noOptions,
    kind: BackendKind | undefined = this.of(named),
  ): Destination | Promise<Destination> {
    if (kind?.destination !== undefined) return kind.destination(placement, named, request, options)
    const { target, name } = named
    if (target.type === 'invalid') throw invalidTarget(target)
    if (kind !== undefined) throw new GatewayError('backend_unsupported', kind.onlyFor)
    const backend = this.#backends.get(name)
    if (backend === undefined) throw new GatewayError('service_not_found', name)
    const detail = backend.type === 'unsupported' ? backend.message : name
    throw new GatewayError('backend_unsupported', detail)
  }

  /**
   * Begins a call to a backend that serves another one, whose policies are `access`. Throws `backend_invalid` or
   * `service_not_found`.
   */
  callOf(
    context: RequestContext,
    named: NamedTarget,
    access: BackendAccess | undefined,
  ): BackendCall {
    if (named.target.type === 'invalid') throw invalidTarget(named.target)
    const call = this.of(named)?.begin?.(context, named, access)
    if (call === undefined) throw new GatewayError('backend_unsupported', named.name)
    return call
  }

  /** Lets kinds change the route of a request. */
  reroute(context: RequestContext): void {
    for (const one of this.#reroutings) {
      if (context.exchange.request.path.startsWith(one.prefix)) one.reroute(context)
    }
  }

  /** Returns the kind of the rule's first backend whose kind has the property. */
  having(property: keyof BackendKind, rule: CompiledRule | undefined): BackendKind | undefined {
    if (rule === undefined) return undefined
    for (const backend of rule.backends) {
      const kind = this.of(backend)
      if (kind?.[property] !== undefined) return kind
    }
    return undefined
  }

  /** Returns the query parameters in which clients may send keys to the backends of a rule, or to any backend. */
  keyParameters(rule: CompiledRule | undefined): ReadonlySet<string> {
    if (rule === undefined) return this.#keyParameters
    return this.having('clientKeys', rule)?.clientKeys?.parameters ?? noParameters
  }

  /** Stores a resource in the kind that uses it. */
  set(resource: Resource, old: Resource | undefined): void {
    const kind = this.#ownerOf(resource)
    const before = old && this.#ownerOf(old)
    if (old !== undefined && before !== kind) before?.remove?.(old)
    kind?.set?.(resource, before === kind ? old : undefined)
    if (resource.type === 'backend') this.#backends.set(nameOf(resource), resource.destination)
  }

  remove(resource: Resource): void {
    this.#ownerOf(resource)?.remove?.(resource)
    if (resource.type === 'backend') this.#backends.delete(nameOf(resource))
  }

  /** Called after each change set. Lets kinds prepare new backends before their first request. */
  applied({ upserted }: DesiredDelta): void {
    for (const { resource } of upserted) {
      if (resource.type === 'backend') this.#ownerOf(resource)?.warmUp?.(resource)
    }
    for (const kind of this.all()) kind.onConfigChange?.()
  }

  #ownerOf(resource: Resource): BackendKind | undefined {
    return resource.type === 'backend'
      ? this.#kinds.get(resource.destination.type)
      : this.#byResource.get(resource.type)
  }
}

function invalidTarget({ reason, message }: InvalidTarget): GatewayError {
  const isMissing = reason === 'BackendNotFound'
  return new GatewayError(isMissing ? 'service_not_found' : 'backend_invalid', message)
}

const noOptions: DestinationOptions = {}
const noParameters: ReadonlySet<string> = new Set()

const nameOf = ({ namespace, name }: BackendName): string => `${namespace}/${name}`

export interface BackendName {
  readonly namespace: string
  readonly name: string
}

/** The GatewayBackends of one type in compiled form, by `namespace/name`. */
export class CompiledBackends<Type extends BackendSettings['type'], Compiled> {
  readonly #type: Type
  readonly #compile: Compile<Type, Compiled>
  readonly #all = new Map<string, Compiled>()

  constructor(type: Type, compile: Compile<Type, Compiled>) {
    this.#type = type
    this.#compile = compile
  }

  get size(): number {
    return this.#all.size
  }

  find(name: string): Compiled | undefined {
    return this.#all.get(name)
  }

  values(): Iterable<Compiled> {
    return this.#all.values()
  }

  readonly set = (resource: Resource): void => {
    if (resource.type !== 'backend' || !isOf(resource.destination, this.#type)) return
    const name = nameOf(resource)
    this.#all.set(name, this.#compile(resource, resource.destination, this.#all.get(name)))
  }

  readonly remove = (resource: Resource): void => {
    if (resource.type === 'backend') this.#all.delete(nameOf(resource))
  }
}

/**
 * Compiles the settings of a backend. `before` is the previous version, whose unchanged parts keep their
 * state.
 */
type Compile<Type, Compiled> = (
  name: BackendName,
  settings: Extract<BackendSettings, { readonly type: Type }>,
  before: Compiled | undefined,
) => Compiled

function isOf<Type extends BackendSettings['type']>(
  settings: BackendSettings,
  type: Type,
): settings is Extract<BackendSettings, { readonly type: Type }> {
  return settings.type === type
}
