/** The state that is published, and the one that some proxies get instead while a change is delivered in steps. */
import type { Diversion } from '../../ground/model/diversion.ts'
import type { DesiredDelta } from '../../ground/model/resources.ts'
import type { ProxyNode } from '../wire/discovery.ts'
import { gatewayRoot } from './edges.ts'
import { PublishedState } from './published-state.ts'
import type { ProxySession } from './session.ts'

interface ServedProxy {
  readonly session: Pick<ProxySession, 'state' | 'changed' | 'moveTo'>
  readonly node: Pick<ProxyNode, 'name' | 'gateway'>
}

interface Options<Served extends ServedProxy> {
  readonly onUnencodable: ConstructorParameters<typeof PublishedState>[0]
  /** Called if a proxy cannot be sent its part. */
  readonly onError: (served: Served, error: unknown) => void
}

type Touched = ReturnType<PublishedState['publish']>

export class ProxyStates<Served extends ServedProxy> {
  readonly #options: Options<Served>
  readonly published: PublishedState
  #diverted: { readonly state: PublishedState; readonly proxies: ReadonlySet<string> } | undefined

  constructor(options: Options<Served>) {
    this.#options = options
    this.published = new PublishedState(options.onUnencodable)
  }

  /** The state that the proxy with a name gets. */
  of(proxy: string): PublishedState {
    const diverted = this.#diverted
    return diverted?.proxies.has(proxy) === true ? diverted.state : this.published
  }

  /**
   * Publishes a change set, and sends each proxy its part. From now on, the proxies that `diversion` names get its state
   * instead; if it is null, none do, and if omitted, the same as before. No proxy acknowledges a position in between.
   */
  publish(
    delta: DesiredDelta,
    diversion: Diversion | null | undefined,
    all: readonly Served[],
  ): void {
    const touched = new Map([[this.published, this.published.publish(delta)]])
    if (diversion === null) this.#diverted = undefined
    else if (diversion !== undefined) this.#divert(diversion, touched)
    for (const one of all) {
      const { session, node } = one
      const keys = touched.get(session.state)?.get(gatewayRoot(node.gateway))
      const wanted = this.of(node.name)
      const isMoved = session.state !== wanted
      if (isMoved) this.#guard(one, session.moveTo(wanted, keys))
      else if (touched.has(wanted)) this.#guard(one, session.changed(keys))
    }
  }

  #divert({ proxies, delta, isNew }: Diversion, touched: Map<PublishedState, Touched>): void {
    const kept = isNew ? undefined : this.#diverted?.state
    const state = kept ?? new PublishedState(this.#options.onUnencodable)
    touched.set(state, state.publish(delta))
    this.#diverted = { state, proxies }
  }

  #guard(one: Served, sent: Promise<void>): void {
    sent.catch((error) => this.#options.onError(one, error))
  }
}
