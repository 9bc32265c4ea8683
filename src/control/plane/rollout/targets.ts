/** Which proxies can get a change before others, and their figures. */
import type { RolloutPlan } from '../../../../events/index.ts'
import type { ConnectedProxy } from '../../actors/delivery.ts'
import type { Fold } from '../../actors/fold.ts'
import type { RolloutStep } from '../../actors/rollout.machine.ts'
import type { FigureSample } from './figures.ts'

/** A proxy of a Gateway, or a worker of a proxy that serves all Gateways. */
interface RolloutTarget {
  readonly name: string
  /** The proxy, or that of the worker. */
  readonly proxy: ConnectedProxy
}

export interface RolloutTargets {
  /** The targets of a Gateway, `namespace/name`, that are connected; sorted by name. */
  of(gateway: string): readonly RolloutTarget[]
  /** The names of the targets of a Gateway; those of workers also before they are connected. */
  names(gateway: string): readonly string[]
  /**
   * What targets of the Gateway have counted in buckets that end after a time. If omitted, nothing is compared.
   */
  readonly figures?: (
    gateway: string,
    names: readonly string[],
    fromMs: number,
  ) => Promise<readonly FigureSample[]>
}

/** The proxies of a cluster. */
export const proxyTargets = (
  fold: Pick<Fold, 'proxies'>,
  figures?: RolloutTargets['figures'],
): RolloutTargets => {
  const of = (gateway: string) =>
    fold
      .proxies()
      .filter((one) => one.gateway === gateway)
      .map((proxy) => ({ name: proxy.proxy, proxy }))
  const names = (gateway: string) => of(gateway).map(({ name }) => name)
  return { of, names, ...(figures && { figures }) }
}

/** The workers of the proxy in this process. */
export const workerTargets = (
  fold: Pick<Fold, 'proxies'>,
  proxy: string,
  workers: number,
  figures: RolloutTargets['figures'],
): RolloutTargets => {
  const names = Array.from({ length: workers }, (_, at) => `${proxy}/${at}`)
  return {
    of: () => {
      const own = fold.proxies().find((one) => one.proxy === proxy)
      return own === undefined ? [] : names.map((name) => ({ name, proxy: own }))
    },
    names: () => names,
    ...(figures && { figures }),
  }
}

/**
 * Whether a proxy without the change is left to compare with. If not, the chosen proxies also get the versions
 * in force, because otherwise the change would be in force everywhere without a comparison.
 */
export function isCompared(
  plans: readonly RolloutPlan[],
  targets: Pick<RolloutTargets, 'names'>,
  chosen: ReadonlySet<string>,
): boolean {
  const names = plans.flatMap(({ gateway }) => targets.names(gateway))
  return names.length === 0 || names.some((name) => !chosen.has(name))
}

/** How many of some proxies a step wants; all of them after the last step. */
function wantedCount({ steps }: Pick<RolloutPlan, 'steps'>, step: number, total: number): number {
  const size = steps[step - 1]
  if (size === undefined) return total
  if (typeof size === 'number') return Math.min(size, total)
  return Math.min(total, Math.ceil((total * Number(size.slice(0, -1))) / 100))
}

/**
 * Chooses proxies for a step: those that have the change already, then ready ones by name. Returns undefined if the
 * step would reach all proxies of all Gateways, so that nothing is left to compare with.
 */
export function chooseProxies(
  plans: readonly RolloutPlan[],
  step: number,
  targets: RolloutTargets,
  present: ReadonlySet<string>,
): string[] | undefined {
  const chosen = new Set<string>()
  let isAll = true
  for (const plan of plans) {
    const all = targets.of(plan.gateway)
    const wanted = wantedCount(plan, step, all.length)
    if (wanted < all.length) isAll = false
    const known = all.filter(({ name }) => present.has(name))
    const fresh = all.filter(({ name, proxy }) => !present.has(name) && proxy.state === 'ready')
    for (const { name } of [...known, ...fresh].slice(0, wanted)) chosen.add(name)
  }
  return isAll ? undefined : [...chosen].sort()
}

/**
 * Returns how often chosen proxies were replaced since the rollout began or was resumed. A step that repeats the one
 * before it at the same position was resumed.
 */
export function replacementsIn(steps: readonly RolloutStep[]): number {
  let count = 0
  for (const [at, step] of steps.entries()) {
    const before = steps[at - 1]
    if (before?.number !== step.number) continue
    count = before.position === step.position ? 0 : count + 1
  }
  return count
}

/** Whether a chosen proxy is gone, so that fewer than wanted have the change. */
export function isIncomplete(
  plans: readonly RolloutPlan[],
  step: number,
  targets: RolloutTargets,
  present: ReadonlySet<string>,
): boolean {
  // The step may have proxies of several Gateways.
  const names = new Set(plans.flatMap(({ gateway }) => targets.of(gateway).map(({ name }) => name)))
  const isAnyGone = [...present].some((name) => !names.has(name))
  if (!isAnyGone) return false
  return plans.some((plan) => {
    const all = targets.of(plan.gateway)
    const left = all.filter(({ name }) => present.has(name)).length
    const ready = all.filter(({ name, proxy }) => !present.has(name) && proxy.state === 'ready')
    return ready.length > 0 && left < wantedCount(plan, step, all.length)
  })
}
