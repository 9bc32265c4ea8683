/** Counts the requests and retries to each backend that has a circuit breaker, over all workers of a proxy. */
import { GatewayError } from '../../../ground/errors/index.ts'
import type { CircuitLimits } from '../../../ground/exchange/connection.ts'
import { createRequestCounts, RequestCap, type RequestCounts } from './request-cap.ts'

/** Number of counters, two for each backend of a policy. Further ones are kept by each worker alone. */
const maxCounters = 8_192
/** Maximum number of backends with their own series. */
const maxBackends = 1_000

export const createCircuitCounts = (workers: number): RequestCounts =>
  createRequestCounts(workers, maxCounters)

type CountedUse = 'requests' | 'retries'

/** A use that was counted, and is given back when it ends. */
export interface CircuitShare {
  giveBack(): void
}

interface Counter extends CircuitShare {
  take(most: number): boolean
}

/** Counts the uses of one worker, if there is no shared counter left. */
class LocalCounter implements Counter {
  #count = 0

  take(most: number): boolean {
    if (this.#count >= most) return false
    this.#count++
    return true
  }

  giveBack(): void {
    this.#count--
  }
}

export class Circuits {
  readonly #cap: RequestCap
  /** By limits and backend. The limits are those of one version of a policy. */
  readonly #counters = new WeakMap<CircuitLimits, Map<string, Counter>>()
  /** Number of refused uses, by backend. */
  readonly #refused = new Map<string, Record<CountedUse, number>>()

  constructor(counts = createCircuitCounts(1), worker = 0) {
    this.#cap = new RequestCap(Number.POSITIVE_INFINITY, counts, worker)
  }

  /** Counts a request; undefined if requests are not limited. @throws GatewayError `circuit_open` */
  request(limits: CircuitLimits, backend: string): CircuitShare | undefined {
    const { maxRequests } = limits
    if (maxRequests === undefined) return undefined
    const share = this.#take(limits, backend, 'requests', maxRequests)
    if (share === undefined) {
      throw new GatewayError('circuit_open', `${backend} has ${maxRequests} requests under way`)
    }
    return share
  }

  /** Counts a request that is retried; undefined if it must not be. */
  retry(limits: CircuitLimits, backend: string, most: number): CircuitShare | undefined {
    return this.#take(limits, backend, 'retries', most)
  }

  #take(
    limits: CircuitLimits,
    backend: string,
    use: CountedUse,
    most: number,
  ): CircuitShare | undefined {
    const counter = this.#counterOf(limits, `${use} ${backend}`)
    if (counter.take(most)) return counter
    const isKnown = this.#refused.has(backend)
    const name = isKnown || this.#refused.size < maxBackends ? backend : '_OTHER'
    const refused = this.#refused.get(name) ?? { requests: 0, retries: 0 }
    refused[use]++
    this.#refused.set(name, refused)
    return undefined
  }

  #counterOf(limits: CircuitLimits, name: string): Counter {
    let counters = this.#counters.get(limits)
    if (counters === undefined) {
      counters = new Map()
      this.#counters.set(limits, counters)
    }
    let counter = counters.get(name)
    if (counter === undefined) {
      counter = this.#cap.shareOf(`${limits.name} ${name}`) ?? new LocalCounter()
      counters.set(name, counter)
    }
    return counter
  }

  /** Numbers of refused uses, by backend. */
  get refused(): ReadonlyMap<string, Readonly<Record<CountedUse, number>>> {
    return this.#refused
  }
}
