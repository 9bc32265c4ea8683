/**
 * The requests that proxies count, in buckets of a second. Each proxy gets the same number of requests. All succeed unless
 * its configuration has a route to a failing path. Requests of such a route get a 5xx, are refused by a policy, or cost
 * twice as much. Replicas see a bucket some time after its end.
 */
import type { RolloutSnapshot } from '../../src/control/actors/rollout.machine.ts'
import type { FigureSample } from '../../src/control/plane/rollout/figures.ts'
import type { ResourceKey } from '../../src/ground/model/resources.ts'
import type { Counts } from '../../src/past/series/bucket.ts'
import type { SimulatedProxy } from './proxy.ts'

/** A path that no version of the backends can serve. */
export const failingPath = '/v4'

const bucketMs = 1_000
const requests = 20
/** Failed requests for each route that fails. */
const failures = 8
const faults = ['errors', 'refusals', 'costs'] as const
type Fault = (typeof faults)[number]

/** How the requests of a route fail. */
const faultOf = (key: ResourceKey): Fault =>
  faults[[...key].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % faults.length] ??
  'errors'
/** Largest difference between the clocks of a replica and of proxies. */
const skewMs = 2_000
/** Interval at which a leader decides about a rollout, with the time until the event is stored. */
const decisionMs = 3_000
/** Number of buckets with failures after which a rollout must not finish. */
const enough = 4

interface Bucket extends FigureSample {
  readonly gateway: string
  readonly isFailing: boolean
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
    const found = [...failingRoutes].map(faultOf)
    const failed = (fault: Fault) =>
      Math.min(requests, failures * found.filter((one) => one === fault).length)
    const cost = failed('costs') > 0 ? '0.000512' : '0.000256'
    const counts: Counts = new Map([
      ['requests', requests],
      ['errors', failed('errors')],
      ['refused', failed('refusals')],
      ['refused:traffic.authorization of GatewayPolicy apps/guests', failed('refusals')],
      ['billed', requests],
      [`cost:${cost} model`, requests],
    ])
    const groups = new Map([['all', new Map([['', counts]])]] as const)
    const isFailing = found.length > 0
    const endMs = startMs + bucketMs
    this.#buckets.push({
      proxy: name,
      gateway: `apps/${gateway}`,
      startMs,
      endMs,
      groups,
      isFailing,
    })
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
      if (analysis.length === 0) return false
      const own = known.filter((one) => one.gateway === gateway)
      const [changed, others] = [true, false].map((isChosen) =>
        own.filter(({ proxy }) => last.proxies.includes(proxy) === isChosen),
      )
      const isCompared = (starts: ReadonlySet<number>) => starts.size >= enough
      const starts = new Set(changed?.map(({ startMs }) => startMs))
      const common = new Set(others?.map(({ startMs }) => startMs)).intersection(starts)
      return (
        isCompared(common) &&
        changed?.every(({ isFailing }) => isFailing) === true &&
        others?.every(({ isFailing }) => !isFailing) === true
      )
    })?.gateway
  }
}
