/** Simulates recorded requests under a state and under a candidate, one after the other. */
import type { VersionedResource } from '../../ground/model/resources.ts'
import type { RecordedDecision } from '../decisions/record.ts'
import type { StateDifferences } from '../explain/differences.ts'
import type { Fold } from '../replay/index.ts'
import {
  requestOf,
  type SimulatedOutcome,
  type Simulation,
  Simulator,
  type SimulatorOptions,
} from '../simulate/index.ts'
import { RequestComparison, type RequestDifference } from './compare.ts'
import { type PriceList, type RequestCost, RequestCosts } from './costs.ts'
import { ChangedDestinations } from './destinations.ts'
import type { Example } from './groups.ts'
import { Places } from './places.ts'
import { ResourceTable } from './resources.ts'
import type { ComparedStates } from './states.ts'

export const exampleOf = ({
  id,
  time,
  request: { method, host, path },
}: RecordedDecision): Example => ({ id, time, method, host, path })

/** What happens to a request now, and how the candidate differs; no difference if nothing changes. */
export interface ComparedRequest {
  readonly outcome: SimulatedOutcome
  readonly difference: RequestDifference
  /** Set for requests to models, if prices are given. */
  readonly cost?: RequestCost
}

export class RecordedRequests {
  readonly #places: Places
  readonly #comparison: RequestComparison
  readonly #present: Simulator
  readonly #candidate: Simulator
  readonly #costs: RequestCosts | undefined

  private constructor(
    states: ComparedStates,
    resources: StateDifferences['resources'],
    present: Simulator,
    candidate: Simulator,
    prices: PriceList | undefined,
  ) {
    const [before, after] = [new ResourceTable(states.present), new ResourceTable(states.fold)]
    this.#costs = prices && new RequestCosts(before, after, prices)
    this.#places = new Places(before, after, resources)
    const destinations = new ChangedDestinations(before, after, this.#places.changed)
    this.#comparison = new RequestComparison(states, this.#places, destinations)
    this.#present = present
    this.#candidate = candidate
  }

  /**
   * `resources` are those that differ; `secrets` are the known values of secrets of both states. Costs are compared if
   * `prices` are given.
   */
  static async open(
    states: ComparedStates,
    resources: StateDifferences['resources'],
    secrets: readonly VersionedResource[],
    options: SimulatorOptions,
    prices?: PriceList,
  ): Promise<RecordedRequests> {
    const open = (fold: Fold) => Simulator.open([...secrets, ...fold.resources()], options)
    const [present, candidate] = [await open(states.present), await open(states.fold)]
    return new RecordedRequests(states, resources, present, candidate, prices)
  }

  /** Returns a promise only if a step has to wait. */
  compare(record: RecordedDecision): ComparedRequest | Promise<ComparedRequest> {
    const now = this.#present.simulate(requestOf(record))
    return now instanceof Promise
      ? now.then((a) => this.#compareWith(a, record))
      : this.#compareWith(now, record)
  }

  #compareWith(
    a: Simulation,
    record: RecordedDecision,
  ): ComparedRequest | Promise<ComparedRequest> {
    if (!this.#places.canReroute && !this.#places.isTouched(a.outcome)) {
      return this.#result(record, a, undefined, undefined)
    }
    const then = this.#candidate.simulate(requestOf(record))
    const result = (simulated: Simulation): ComparedRequest => {
      const b = this.#comparison.byWeight(a, simulated)
      const difference = this.#comparison.compare(a, b)
      // Undecided for the same reason on both sides: nothing changes.
      const isSame = difference === undefined && b.outcome.verdict !== 'forward'
      return this.#result(record, a, isSame ? undefined : b, difference)
    }
    return then instanceof Promise ? then.then(result) : result(then)
  }

  #result(
    record: RecordedDecision,
    { outcome }: Simulation,
    after: Simulation | undefined,
    difference: RequestDifference,
  ): ComparedRequest {
    const cost = this.#costs?.of(record, outcome, after?.outcome)
    return { outcome, difference, ...(cost && { cost }) }
  }

  close(): void {
    this.#present.close()
    this.#candidate.close()
  }
}
