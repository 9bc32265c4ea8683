/** What the proxy needs to know of a kind of backends. */
import type { ChosenBackend } from '../exchange/exchange.ts'
import type { BackendResource } from '../model/resources.ts'
import type { BackendCall } from './backend-call.ts'
import type { RulePlacement } from './config/placement.ts'
import type { NamedTarget } from './config/rules.ts'
import type { ErrorWriter } from './error-response.ts'
import type { RequestContext } from './request-context.ts'
import type { Destination } from './upstream/destination.ts'
import type { Asked } from './upstream/http-version.ts'
import type { DestinationOptions, PolicyPlace } from './upstream/resolve.ts'

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
  /** Looks up what a new backend will need, before it is first called. */
  warmUp?(resource: BackendResource): void
  /** A change set was applied. */
  onConfigChange?(): void
  /** The process stops: streams to clients end. */
  stop?(): void
}

interface BackendTypes {
  find(name: string): { readonly type: string } | undefined
}

/** The kinds of backends of one data plane, by the type of their configuration. */
export class BackendKinds {
  readonly #backends: BackendTypes
  readonly #kinds = new Map<string, BackendKind>()
  /** Those that change routes. */
  readonly rerouting: BackendKind[] = []

  constructor(backends: BackendTypes) {
    this.#backends = backends
  }

  add(type: string, kind: BackendKind): void {
    this.#kinds.set(type, kind)
    if (kind.reroute !== undefined) this.rerouting.push(kind)
  }

  all(): Iterable<BackendKind> {
    return this.#kinds.values()
  }

  get(type: string): BackendKind | undefined {
    return this.#kinds.get(type)
  }

  /** Undefined if the backend does not exist or is of no known kind. */
  of({ target, name }: NamedTarget): BackendKind | undefined {
    if (target.type !== 'backend') return this.#kinds.get(target.type)
    const found = this.#backends.find(name)
    return found && this.#kinds.get(found.type)
  }
}
