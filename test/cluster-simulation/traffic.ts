/**
 * The requests that proxies count, in buckets of a second. Each proxy gets the same number of requests. None fail, unless
 * its configuration has a route to a path that fails. Replicas see a bucket some time after its end.
 */
import type { RolloutSnapshot } from '../../src/control/actors/rollout.machine.ts'
import type { FigureSample } from '../../src/control/plane/rollout/figures.ts'
import type { Counts } from '../../src/past/series/bucket.ts'
import type { SimulatedProxy } from './proxy.ts'

/** A path that no version of the backends can serve. */
export const failingPath = '/v4'

const bucketMs = 1_000
const requests = 20
/** Failed requests for each route that fails. */
const failures = 8
/** Largest difference between the clocks of a replica and of proxies. */
const skewMs = 2_000
/** Interval at which a leader decides about a rollout, with the time until the event is stored. */
const decisionMs = 3_000
/** Number of buckets with failures after which a rollout must not finish. */
const enough = 4

interface Bucket extends FigureSample {
  readonly gateway: string
  readonly errors: number
}

export class Traffic {
  readonly #lagMs: number
  readonly #buckets: Bucket[] = []
  /** Times at which the steps of rollouts were stored, by their positions. */
  readonly #steppedAt = new Map<number, number>()

  constructor(lagMs: number) {
    this.#lagMs = lagMs
  }

  /** Counts the last second at a proxy. */
  count({ machine: { name }, gateway, failingRoutes }: SimulatedProxy, nowMs: number): void {
    const startMs = Math.floor(nowMs / bucketMs) * bucketMs - bucketMs
    const errors = Math.min(requests, failingRoutes * failures)
    const counts: Counts = new Map([
      ['requests', requests],
      ['errors', errors],
    ])
    const groups = new Map([['all', new Map([['', counts]])]] as const)
    const endMs = startMs + bucketMs
    this.#buckets.push({ proxy: name, gateway: `apps/${gateway}`, startMs, endMs, groups, errors })
  }

  /** Returns the buckets that a replica has received. */
  figures(
    gateway: string,
    names: readonly string[],
    fromMs: number,
    nowMs: number,
  ): readonly FigureSample[] {
    return this.#buckets.filter(
      ({ proxy, endMs, gateway: own }) =>
        own === gateway && names.includes(proxy) && endMs > fromMs && endMs <= nowMs - this.#lagMs,
    )
  }

  stepped(position: number, nowMs: number): void {
    this.#steppedAt.set(position, nowMs)
  }

  /** Returns a Gateway whose chosen proxies fail while its other proxies do not; undefined if there is none. */
  failingGateway({ context }: RolloutSnapshot, nowMs: number): string | undefined {
    const last = context.steps.at(-1)
    const steppedMs = this.#steppedAt.get(last?.position ?? -1)
    if (last === undefined || steppedMs === undefined) return undefined
    const known = this.#buckets.filter(
      ({ startMs, endMs }) =>
        startMs >= steppedMs + skewMs && endMs <= nowMs - this.#lagMs - decisionMs,
    )
    return context.plans.find(({ gateway, analysis }) => {
      if (!analysis.includes('Errors')) return false
      const own = known.filter((one) => one.gateway === gateway)
      const [changed, others] = [true, false].map((isChosen) =>
        own.filter(({ proxy }) => last.proxies.includes(proxy) === isChosen),
      )
      const isCompared = (starts: ReadonlySet<number>) => starts.size >= enough
      const starts = new Set(changed?.map(({ startMs }) => startMs))
      const common = new Set(others?.map(({ startMs }) => startMs)).intersection(starts)
      return (
        isCompared(common) &&
        changed?.every(({ errors }) => errors >= failures) === true &&
        others?.every(({ errors }) => errors === 0) === true
      )
    })?.gateway
  }
}
