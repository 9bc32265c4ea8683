/** Simulates recorded requests under a state and under a candidate, one after the other. */
import { PublishedState } from '../../control/xds/published-state.ts'
import { gatewayRef } from '../../ground/model/names.ts'
import type { VersionedResource } from '../../ground/model/resources.ts'
import type { RecordedDecision } from '../decisions/record.ts'
import type { StateDifferences } from '../explain/differences.ts'
import type { Fold } from '../replay/index.ts'
import {
  requestOf,
  type SimulatedOutcome,
  type SimulatedRequest,
  type SimulatedStep,
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
import { protective } from './structure.ts'

export const exampleOf = ({
  id,
  time,
  request: { method, host, path },
}: RecordedDecision): Example => ({ id, time, method, host, path })

/** What happens to a request now, and how the candidate differs; no difference if nothing changes. */
export interface ComparedRequest {
  readonly outcome: SimulatedOutcome
  /** The simulation of the present state. */
  readonly now: Simulation
  readonly difference: RequestDifference
  /** The step of authentication or authorization that refuses the request now, if the candidate admits it. */
  readonly admittedBy?: SimulatedStep
  /** The step that refuses the request in the candidate, if it is not refused now. */
  readonly refusedBy?: SimulatedStep
  /** Set for requests to models, if prices are given. */
  readonly cost?: RequestCost
}

/** Simulates the requests of a proxy with the present state and with the candidate. */
interface Simulators {
  readonly present: Simulator
  readonly candidate: Simulator
}

interface RecordedRequestsOptions {
  /** Known values of secrets of both states. */
  readonly secrets?: readonly VersionedResource[]
  readonly simulator: SimulatorOptions
  /** Costs are compared if prices are given. */
  readonly prices?: PriceList | undefined
}

export class RecordedRequests {
  readonly #states: ComparedStates
  readonly #options: RecordedRequestsOptions
  readonly #places: Places
  readonly #comparison: RequestComparison
  readonly #costs: RequestCosts | undefined
  /** By Gateway if each has its own proxies, otherwise one entry with an empty name. */
  readonly #simulators = new Map<string, Simulators>()

  /** `resources` are those that differ. */
  constructor(
    states: ComparedStates,
    resources: StateDifferences['resources'],
    options: RecordedRequestsOptions,
  ) {
    const [before, after] = [new ResourceTable(states.present), new ResourceTable(states.fold)]
    this.#states = states
    this.#options = options
    this.#costs = options.prices && new RequestCosts(before, after, options.prices)
    this.#places = new Places(before, after, resources)
    const destinations = new ChangedDestinations(before, after, this.#places.changed)
    this.#comparison = new RequestComparison(states, this.#places, destinations)
  }

  /**
   * Returns a promise only if a step has to wait, or if the record is the first of its Gateway.
   * @param now the simulation of the present state. Callers pass it for all records or for none
   */
  compare(record: RecordedDecision, now?: Simulation): ComparedRequest | Promise<ComparedRequest> {
    const gateway = hasOwnProxies(this.#states.present) ? (record.route.gateway ?? '') : ''
    const known = this.#simulators.get(gateway)
    return known === undefined
      ? this.#open(gateway).then((simulators) => this.#compareIn(simulators, record, now))
      : this.#compareIn(known, record, now)
  }

  async #open(gateway: string): Promise<Simulators> {
    const { secrets = [], simulator } = this.#options
    const open = (fold: Fold) =>
      Simulator.open([...secrets, ...resourcesOf(fold, gateway)], simulator)
    const { present, fold } = this.#states
    const simulators = { present: await open(present), candidate: await open(fold) }
    this.#simulators.set(gateway, simulators)
    return simulators
  }

  #compareIn(
    { present, candidate }: Simulators,
    record: RecordedDecision,
    known: Simulation | undefined,
  ): ComparedRequest | Promise<ComparedRequest> {
    const request = requestOf(record)
    const now = known ?? present.simulate(request)
    return now instanceof Promise
      ? now.then((a) => this.#compareWith(a, candidate, record, request))
      : this.#compareWith(now, candidate, record, request)
  }

  #compareWith(
    a: Simulation,
    candidate: Simulator,
    record: RecordedDecision,
    request: SimulatedRequest,
  ): ComparedRequest | Promise<ComparedRequest> {
    if (!this.#places.canReroute && !this.#places.isTouched(a.outcome)) {
      return this.#result(record, a, undefined, undefined)
    }
    const then = candidate.simulate(request)
    const result = (simulated: Simulation): ComparedRequest => {
      const b = this.#comparison.applyWeights(a, simulated)
      const difference = this.#comparison.compare(a, b)
      // Undecided for the same reason on both sides: nothing changes.
      const isSame = difference === undefined && b.outcome.verdict !== 'forward'
      return { ...this.#result(record, a, isSame ? undefined : b, difference), ...decidedBy(a, b) }
    }
    return then instanceof Promise ? then.then(result) : result(then)
  }

  #result(
    record: RecordedDecision,
    now: Simulation,
    after: Simulation | undefined,
    difference: RequestDifference,
  ): ComparedRequest {
    const { outcome } = now
    const cost = this.#costs?.of(record, outcome, after?.outcome)
    return { outcome, now, difference, ...(cost && { cost }) }
  }

  close(): void {
    for (const { present, candidate } of this.#simulators.values()) {
      present.close()
      candidate.close()
    }
  }
}

/** Statuses by which requests are refused or sent to sign in. */
const refusals: ReadonlySet<number | undefined> = new Set([302, 303, 401, 403])

/** The step that refuses a request in only one of two simulations. */
function decidedBy(
  a: Simulation,
  b: Simulation,
): Pick<ComparedRequest, 'admittedBy' | 'refusedBy'> {
  const [before, after] = [refusingStep(a), refusingStep(b)]
  if (before !== undefined && isServed(b)) return { admittedBy: before }
  return after !== undefined && isServed(a) ? { refusedBy: after } : {}
}

function refusingStep({ steps, outcome }: Simulation): SimulatedStep | undefined {
  const last = steps.at(-1)
  const isRefused = outcome.verdict === 'answer' && refusals.has(outcome.status)
  return isRefused && last?.verdict === 'answer' && protective.has(last.step) ? last : undefined
}

const isServed = ({ outcome: { verdict, status = 0 } }: Simulation): boolean =>
  verdict === 'forward' || (verdict === 'answer' && status < 300)

/** Whether each Gateway has its own proxies, as in a cluster. Gateways may then have listeners on the same port. */
export const hasOwnProxies = ({ definitions }: Fold): boolean => definitions !== undefined

/** The resources that the proxies of a Gateway get; all for the empty name. */
function resourcesOf(fold: Fold, gateway: string): readonly VersionedResource[] {
  if (gateway === '') return fold.resources()
  const state = new PublishedState(() => undefined)
  state.publish({ sequence: 0, upserted: fold.resources(), removed: [] })
  const own = state.openGateway(gatewayRef(gateway))
  return Array.from(own.keys()).flatMap((key) => {
    const [resource, version] = [own.resource(key), own.version(key)]
    return resource === undefined || version === undefined ? [] : [{ resource, version }]
  })
}
