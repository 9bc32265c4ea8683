/** What the proxy needs to know of a kind of backends. */
import type { ChosenBackend } from '../../exchange/exchange.ts'
import type {
  BackendResource,
  Destination as BackendSettings,
  DesiredDelta,
  Resource,
  ResourceType,
} from '../../model/resources.ts'
import type { RulePlacement } from '../config/placement.ts'
import type { NamedTarget } from '../config/rules.ts'
import type { Destination } from '../upstream/destination.ts'
import type { Asked } from '../upstream/http-version.ts'
import type { BackendCall } from './backend-call.ts'
import type { DestinationOptions, PolicyPlace } from './destinations.ts'
import type { ErrorWriter } from './error-response.ts'
import type { RequestContext } from './request-context.ts'

/**
 * One kind of backends: what its requests are called, and where they go. A kind either has
 * `destination`, if anything may be sent to its backends (requests, mirrors, callouts, streams), or
 * begins a call for each request, which may do more. Everything else is optional.
 */
export interface BackendKind {
  /** What expressions call `backend.type` and `backend.protocol`. */
  readonly type: ChosenBackend['type']
  readonly protocol: ChosenBackend['protocol']
  /** Throws or rejects with a GatewayError if there is nowhere to send anything. */
  destination?(
    placement: PolicyPlace,
    backend: NamedTarget,
    request: Asked,
    options: DestinationOptions,
  ): Destination | Promise<Destination>
  begin?(context: RequestContext, backend: NamedTarget): BackendCall
  /** Why nothing but requests of its clients can be sent to a kind without `destination`. */
  readonly onlyFor?: string
  /** Clients may send credentials as the SDKs of model vendors do, `?key=` among them. */
  readonly takesVendorKeys?: true
  /** How clients expect errors of requests that no call was begun for. */
  errorWriter?(
    context: RequestContext,
    placement: RulePlacement | undefined,
    backend: NamedTarget,
  ): ErrorWriter | undefined
  /** Changes the route of requests that belong to a backend of the kind wherever they point. */
  reroute?(context: RequestContext): void
  /** Types of resources that the kind keeps besides its GatewayBackends. */
  readonly resources?: readonly ResourceType[]
  /** Takes in a resource of the kind; `old` is what it was until now. */
  set?(resource: Resource, old: Resource | undefined): void
  remove?(resource: Resource): void
  /** Looks up what a new backend will need, before it is first called. */
  warmUp?(resource: BackendResource): void
  /** A change set was applied. */
  onConfigChange?(): void
  /** The process stops: streams to clients end. */
  stop?(): void
}

/** The kinds of backends of one data plane, by the type of their configuration. */
export class BackendKinds {
  readonly #kinds = new Map<string, BackendKind>()
  readonly #byResource = new Map<ResourceType, BackendKind>()
  /** GatewayBackends by `namespace/name`. */
  readonly #backends = new Map<string, BackendSettings>()
  /** Those that change routes. */
  readonly rerouting: BackendKind[] = []

  add(type: string, kind: BackendKind): void {
    this.#kinds.set(type, kind)
    for (const resource of kind.resources ?? []) this.#byResource.set(resource, kind)
    if (kind.reroute !== undefined) this.rerouting.push(kind)
  }

  all(): Iterable<BackendKind> {
    return this.#kinds.values()
  }

  /** Undefined if the backend does not exist or is of no known kind. */
  of({ target, name }: NamedTarget): BackendKind | undefined {
    if (target.type !== 'backend') return this.#kinds.get(target.type)
    const found = this.#backends.get(name)
    return found && this.#kinds.get(found.type)
  }

  /** What a GatewayBackend is configured to be. */
  find(name: string): BackendSettings | undefined {
    return this.#backends.get(name)
  }

  /** Takes in a resource that destinations are made of. */
  set(resource: Resource, old: Resource | undefined): void {
    const kind = this.#keeperOf(resource)
    const before = old && this.#keeperOf(old)
    if (old !== undefined && before !== kind) before?.remove?.(old)
    kind?.set?.(resource, before === kind ? old : undefined)
    if (resource.type === 'backend') this.#backends.set(nameOf(resource), resource.destination)
  }

  remove(resource: Resource): void {
    this.#keeperOf(resource)?.remove?.(resource)
    if (resource.type === 'backend') this.#backends.delete(nameOf(resource))
  }

  /** A change set is in force: kinds prepare their new backends before the first request. */
  applied({ upserted }: DesiredDelta): void {
    for (const { resource } of upserted) {
      if (resource.type === 'backend') this.#keeperOf(resource)?.warmUp?.(resource)
    }
    for (const kind of this.all()) kind.onConfigChange?.()
  }

  #keeperOf(resource: Resource): BackendKind | undefined {
    return resource.type === 'backend'
      ? this.#kinds.get(resource.destination.type)
      : this.#byResource.get(resource.type)
  }
}

const nameOf = ({ namespace, name }: BackendName): string => `${namespace}/${name}`

export interface BackendName {
  readonly namespace: string
  readonly name: string
}

/** The GatewayBackends of one type as requests need them, by `namespace/name`. */
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

  readonly set = (resource: Resource): void => {
    if (resource.type !== 'backend' || !isOf(resource.destination, this.#type)) return
    const name = nameOf(resource)
    this.#all.set(name, this.#compile(resource, resource.destination, this.#all.get(name)))
  }

  readonly remove = (resource: Resource): void => {
    if (resource.type === 'backend') this.#all.delete(nameOf(resource))
  }
}

/** `before`: what the backend was; what has not changed keeps what was learned of it. */
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
