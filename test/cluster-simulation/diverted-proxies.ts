/** What the proxies that a rollout names should have, at every position of the log. */
import { Fold } from '../../src/control/actors/fold.ts'
import { createGraph } from '../../src/control/desired/derivations.ts'
import type { Recorded } from '../../src/control/log/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { PublishedState } from '../../src/control/xds/published-state.ts'
import type { ObjectName } from '../../src/ground/model/names.ts'

/** From a position on, these proxies have a state of their own; none if there are no proxies. */
interface Diversion {
  readonly position: number
  readonly proxies: ReadonlySet<string>
  /** By Gateway, `namespace/name`. */
  readonly fingerprints: ReadonlyMap<string, string>
}

export class DivertedProxies {
  readonly #gateways: readonly ObjectName[]
  readonly #fingerprintOf: (versions: (readonly [string, string])[]) => string
  readonly #history: Diversion[] = []
  #candidate: Fold | undefined
  #rollout = 0

  constructor(
    gateways: readonly ObjectName[],
    fingerprintOf: (versions: (readonly [string, string])[]) => string,
  ) {
    this.#gateways = gateways
    this.#fingerprintOf = fingerprintOf
  }

  /** Called after the fold has taken an event. */
  take(fold: Fold, recorded: Recorded): void {
    const { position: rollout = 0, steps = [], plans = [] } = fold.rollouts.running?.context ?? {}
    const proxies = new Set(steps.at(-1)?.proxies)
    const before = this.#history.at(-1)
    if (proxies.size === 0) {
      this.#candidate = undefined
      if ((before?.proxies.size ?? 0) > 0) this.#note(recorded.position, proxies)
      return
    }
    if (this.#candidate === undefined || this.#rollout !== rollout) {
      this.#rollout = rollout
      this.#candidate = new Fold(createGraph({ checkRegex: regexProblem }))
      this.#candidate.restore(JSON.parse(JSON.stringify(fold.snapshot())))
      this.#candidate.rollouts.becomeCandidate()
      this.#candidate.graph.settle()
    } else this.#candidate.apply(recorded)
    const gateways = new Set(plans.map(({ gateway }) => gateway))
    const connected = fold.proxies().filter((one) => gateways.has(one.gateway ?? ''))
    // If no other proxy is left, the chosen ones get what is in force.
    const isAlone = connected.length > 0 && connected.every(({ proxy }) => proxies.has(proxy))
    this.#note(recorded.position, isAlone ? new Set() : proxies)
  }

  #note(position: number, proxies: ReadonlySet<string>): void {
    const state = new PublishedState(() => undefined)
    const upserted = this.#candidate?.resources() ?? []
    state.publish({ sequence: position, upserted, removed: [] })
    const fingerprints = new Map<string, string>()
    for (const gateway of this.#gateways) {
      const part = state.openGateway(gateway)
      const versions = [...part.keys()].map((key) => [key, part.version(key) ?? ''] as const)
      fingerprints.set(`${gateway.namespace}/${gateway.name}`, this.#fingerprintOf(versions))
    }
    this.#history.push({ position, proxies, fingerprints })
  }

  /** Fingerprint of what a diverted proxy should have at a position; undefined if it is not diverted. */
  fingerprintAt(proxy: string, gateway: string, position: number): string | undefined {
    const at = this.#history.findLast((one) => one.position <= position)
    return at?.proxies.has(proxy) ? at.fingerprints.get(gateway) : undefined
  }

  isDiverted(proxy: string): boolean {
    return this.#history.at(-1)?.proxies.has(proxy) === true
  }
}
