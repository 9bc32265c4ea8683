/** Simulates recorded requests under a state and under a candidate, one after the other. */
import type { VersionedResource } from '../../ground/model/resources.ts'
import type { RecordedDecision } from '../decisions/record.ts'
import type { StateDifferences } from '../explain/differences.ts'
import type { Fold } from '../replay/index.ts'
import {
  requestOf,
  type SimulatedOutcome,
  type SimulatedRequest,
  type Simulation,
  Simulator,
  type SimulatorOptions,
} from '../simulate/index.ts'
import { RequestComparison, type RequestDifference } from './compare.ts'
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
}

export class RecordedRequests {
  readonly #places: Places
  readonly #comparison: RequestComparison
  readonly #present: Simulator
  readonly #candidate: Simulator

  private constructor(
    states: ComparedStates,
    resources: StateDifferences['resources'],
    present: Simulator,
    candidate: Simulator,
  ) {
    const [before, after] = [new ResourceTable(states.present), new ResourceTable(states.fold)]
    this.#places = new Places(before, after, resources)
    const destinations = new ChangedDestinations(before, after, this.#places.changed)
    this.#comparison = new RequestComparison(states, this.#places, destinations)
    this.#present = present
    this.#candidate = candidate
  }

  /** `resources` are those that differ; `secrets` are the known values of secrets of both states. */
  static async open(
    states: ComparedStates,
    resources: StateDifferences['resources'],
    secrets: readonly VersionedResource[],
    options: SimulatorOptions,
  ): Promise<RecordedRequests> {
    const open = (fold: Fold) => Simulator.open([...secrets, ...fold.resources()], options)
    const [present, candidate] = [await open(states.present), await open(states.fold)]
    return new RecordedRequests(states, resources, present, candidate)
  }

  /** Returns a promise only if a step has to wait. */
  compare(record: RecordedDecision): ComparedRequest | Promise<ComparedRequest> {
    const request = requestOf(record)
    const now = this.#present.simulate(request)
    return now instanceof Promise
      ? now.then((a) => this.#compareWith(a, request))
      : this.#compareWith(now, request)
  }

  #compareWith(
    a: Simulation,
    request: SimulatedRequest,
  ): ComparedRequest | Promise<ComparedRequest> {
    const { outcome } = a
    if (!this.#places.canReroute && !this.#places.isTouched(outcome)) {
      return { outcome, difference: undefined }
    }
    const then = this.#candidate.simulate(request)
    const result = (b: Simulation) => ({ outcome, difference: this.#comparison.compare(a, b) })
    return then instanceof Promise ? then.then(result) : result(then)
  }

  close(): void {
    this.#present.close()
    this.#candidate.close()
  }
}
