/**
 * Delivers changes in steps, on the replica that may write the log:
 *
 *   something waits ── no more came for a moment ──► RolloutStarted, or RolloutSkipped if no steps concern it
 *   started, or the hold of a step is over ──► RolloutStepped, or RolloutEnded (Finished) after the last step
 *   proxies with the change fail more often, or reject it ──► RolloutEnded (RolledBack)
 *   figures are missing, or no proxy without the change is left ──► RolloutPaused
 *
 * Only these events change what proxies get. The next leader continues where the last one ended, because every
 * decision follows from the fold and from stored figures.
 */
import {
  type JudgedObject,
  type RolloutPlan,
  rolloutEnded,
  rolloutPaused,
  rolloutSkipped,
  rolloutStarted,
  rolloutStepped,
  type SluiceEvent,
} from '../../../../events/index.ts'
import { parseDurationMs } from '../../../ground/base/duration.ts'
import { objectText } from '../../../ground/model/names.ts'
import type { Fold } from '../../actors/fold.ts'
import { judgedVersion } from '../../actors/judged-versions.ts'
import type { RolloutSnapshot } from '../../actors/rollout.machine.ts'
import type { RolloutSpec } from '../../api/gateway-parameters.ts'
import { parametersInForce } from '../../desired/parameters-in-force.ts'
import { DecisionLoop, type DecisionLoopOptions } from '../decision-loop.ts'
import { affectedGateways } from './affected.ts'
import { problemOf } from './figures.ts'
import {
  chooseProxies,
  isCompared,
  isIncomplete,
  type RolloutTargets,
  replacementsIn,
} from './targets.ts'

interface RolloutLeaderOptions extends DecisionLoopOptions {
  readonly targets: RolloutTargets
  /** Whether the chosen proxies get another version of a resource than the others. */
  readonly differs: (key: string) => boolean
}

/** Interval at which a rollout is evaluated. */
const tickMs = 1_000
/** How long figures may be missing at the end of a hold before the rollout is paused. */
const figuresLimitMs = 60_000

/** Time after which a rollout is paused if all proxies are chosen ones. In the meantime, no proxy has the change. */
const aloneLimitMs = 5_000

/** Maximum number of replacements of chosen proxies. Then the rollout is paused. */
const maxReplacements = 2

/** What to do about a rollout; undefined if there is nothing to do now. */
type Decision = SluiceEvent | undefined

export class RolloutLeader {
  readonly #options: RolloutLeaderOptions
  readonly #loop: DecisionLoop
  /** The rollout under way and the objects that were found to wait for it, so that they are checked only once. */
  #deferred = ''
  /** The time since which there has been no proxy to compare with. */
  #aloneSinceMs: number | undefined

  constructor(options: RolloutLeaderOptions) {
    this.#options = options
    this.#loop = new DecisionLoop(options, {
      source: '/sluice/rollout',
      subject: { kind: 'Desired', name: 'rollout' },
      verb: 'delivered',
      repeatMs: tickMs,
      hasWork: () => this.#hasWork(),
      decide: (epoch) => this.#decide(epoch),
    })
  }

  /** Called after each batch of events. */
  update(): void {
    this.#loop.update()
  }

  close(): void {
    this.#loop.close()
  }

  #hasWork(): boolean {
    const { fold } = this.#options
    if (fold.rollouts.waiting.size === 0) return false
    return fold.rollouts.running !== undefined || this.#fresh().length > 0
  }

  /** The objects that wait and are in no rollout. */
  #fresh(): JudgedObject[] {
    return [...this.#options.fold.rollouts.waiting.values()].flatMap(({ newest, rollout }) =>
      rollout === undefined ? [judgedVersion(newest)] : [],
    )
  }

  async #decide(epoch: number): Promise<SluiceEvent[]> {
    const { running } = this.#options.fold.rollouts
    const decision = (running && (await this.#advance(running, epoch))) ?? this.#begin(epoch)
    return decision === undefined ? [] : [decision]
  }

  /** Starts a rollout, or lets through what no steps concern. */
  #begin(epoch: number): Decision {
    const { fold, notify } = this.#options
    const objects = this.#fresh()
    const { running } = fold.rollouts
    const version = JSON.stringify([running?.context.position, objects])
    if (objects.length === 0 || version === this.#deferred) return undefined
    const plans = plansOf(fold)
    const gateways = new Set(affectedGateways(fold, objects, [...plans.keys()]))
    if (gateways.size === 0) return this.#loop.event(rolloutSkipped, epoch, { objects })
    this.#deferred = running === undefined ? '' : version
    if (running !== undefined) return undefined
    const names = objects.slice(0, 3).map(objectText).join(', ')
    notify('info', `a change is delivered in steps (${names})`)
    const affected = [...plans.values()].filter(({ gateway }) => gateways.has(gateway))
    return this.#loop.event(rolloutStarted, epoch, { objects, plans: affected })
  }

  async #advance(rollout: RolloutSnapshot, epoch: number): Promise<Decision> {
    const { plans, steps, position } = rollout.context
    const { targets, notify } = this.#options
    const problem = this.#rejection(rollout) ?? (await this.#comparison(rollout))
    if (problem !== undefined) {
      notify('warn', `rollout ${position} is rolled back: ${problem}`)
      const data = { rollout: position, outcome: 'RolledBack', reason: problem } as const
      return this.#loop.event(rolloutEnded, epoch, data)
    }
    const last = steps.at(-1)
    const present = new Set(last?.proxies)
    const isAlone = last !== undefined && !isCompared(plans, targets, present)
    if (!isAlone) this.#aloneSinceMs = undefined
    if (rollout.value === 'paused') return undefined
    if (isAlone) return this.#alone(position, epoch)
    const number = last?.number ?? 0
    if (last !== undefined && isIncomplete(plans, number, targets, present)) {
      return this.#replace(rollout, number, epoch)
    }
    return last === undefined ? this.#first(rollout, epoch) : this.#afterHold(rollout, epoch)
  }

  /** Replaces chosen proxies that are gone, but only a few times: the change may be the reason why they end. */
  #replace(rollout: RolloutSnapshot, number: number, epoch: number): Decision {
    const { steps, position } = rollout.context
    const count = replacementsIn(steps)
    if (count < maxReplacements) return this.#step(rollout, number, epoch)
    const reason = `chosen proxies were replaced ${count} times, and another one is gone; the change may be the reason`
    this.#options.notify('warn', `rollout ${position} is paused: ${reason}`)
    return this.#loop.event(rolloutPaused, epoch, { rollout: position, reason })
  }

  /** Pauses a rollout without a proxy to compare with, unless one connects in time. */
  #alone(rollout: number, epoch: number): Decision {
    this.#aloneSinceMs ??= Date.now()
    if (Date.now() < this.#aloneSinceMs + aloneLimitMs) return undefined
    const reason =
      'no proxy without the change is left to compare with, so the change is not in force; resume the rollout when other proxies are connected, or finish or abort it'
    this.#options.notify('warn', `rollout ${rollout} is paused: ${reason}`)
    return this.#loop.event(rolloutPaused, epoch, { rollout, reason })
  }

  /** Begins with the first step. If no proxy is connected, waits for the time of a hold, because proxies may reconnect. */
  #first(rollout: RolloutSnapshot, epoch: number): Decision {
    const { plans, since } = rollout.context
    const isEmpty = this.#withoutProxies(plans) !== undefined
    if (isEmpty && Date.now() < Date.parse(since) + holdMsOf(plans)) return undefined
    return this.#step(rollout, 1, epoch)
  }

  async #afterHold(rollout: RolloutSnapshot, epoch: number): Promise<Decision> {
    const { plans, steps, position } = rollout.context
    const last = steps.at(-1)
    if (last === undefined) return undefined
    const endMs = Date.parse(last.since) + holdMsOf(plans)
    if (Date.now() < endMs) return undefined
    const missing =
      this.#withoutProxies(plans) ??
      this.#withoutChange(last) ??
      (await this.#withoutFigures(rollout, endMs))
    if (missing === undefined) return this.#step(rollout, last.number + 1, epoch)
    if (Date.now() < endMs + figuresLimitMs) return undefined
    this.#options.notify('warn', `rollout ${position} is paused: ${missing}`)
    return this.#loop.event(rolloutPaused, epoch, { rollout: position, reason: missing })
  }

  #step({ context: { plans, steps, position } }: RolloutSnapshot, number: number, epoch: number) {
    const { targets, notify } = this.#options
    const present = new Set(steps.at(-1)?.proxies)
    const proxies = chooseProxies(plans, number, targets, present)
    if (proxies === undefined) {
      notify('info', `rollout ${position} is finished`)
      const data = { rollout: position, outcome: 'Finished', reason: 'all steps are done' } as const
      return this.#loop.event(rolloutEnded, epoch, data)
    }
    if (proxies.length === 0) return undefined
    notify('info', `rollout ${position} is at step ${number}: ${proxies.join(', ')}`)
    return this.#loop.event(rolloutStepped, epoch, { rollout: position, step: number, proxies })
  }

  /** Why a chosen proxy cannot apply the change. */
  #rejection({ context: { plans, steps } }: RolloutSnapshot): string | undefined {
    const { targets, differs } = this.#options
    const chosen = new Set(steps.at(-1)?.proxies)
    for (const { gateway } of plans) {
      for (const { name, proxy } of targets.of(gateway)) {
        if (!chosen.has(name)) continue
        for (const [key, { message }] of Object.entries(proxy.rejections)) {
          if (differs(key)) return `proxy ${proxy.proxy} rejects ${key}: ${message}`
        }
      }
    }
    return undefined
  }

  async #comparison({ context: { plans, steps } }: RolloutSnapshot): Promise<string | undefined> {
    const [first] = steps
    if (first === undefined) return undefined
    for (const plan of plans) {
      if (plan.analysis.length === 0) continue
      const samples = await this.#samples(plan, Date.parse(first.since))
      const problem = problemOf(plan, steps, samples)
      if (problem !== undefined) return `Gateway ${plan.gateway}, ${problem}`
    }
    return undefined
  }

  async #samples({ gateway }: RolloutPlan, fromMs: number) {
    const { targets } = this.#options
    const names = targets.of(gateway).map(({ name }) => name)
    return (await targets.figures?.(gateway, names, fromMs)) ?? []
  }

  /** Nothing was tested if the proxies of a step are gone. */
  #withoutProxies(plans: readonly RolloutPlan[]): string | undefined {
    const { targets } = this.#options
    const isAny = plans.some(({ gateway }) => targets.of(gateway).length > 0)
    return isAny ? undefined : 'no proxy is connected'
  }

  /** Names a chosen proxy that does not have the change in force yet. */
  #withoutChange({ proxies, position }: RolloutSnapshot['context']['steps'][number]) {
    const { fold } = this.#options
    const late = fold
      .proxies()
      .find(
        ({ proxy, watermark }) =>
          watermark < position &&
          proxies.some((name) => name === proxy || name.startsWith(`${proxy}/`)),
      )
    return late && `proxy ${late.proxy} has not acknowledged the change`
  }

  /** Names a chosen proxy that has not reported its figures up to a time. */
  async #withoutFigures(
    { context }: RolloutSnapshot,
    untilMs: number,
  ): Promise<string | undefined> {
    const { targets } = this.#options
    const { steps, plans } = context
    const last = steps.at(-1)
    if (targets.figures === undefined || last === undefined) return undefined
    for (const plan of plans) {
      if (plan.analysis.length === 0) continue
      const samples = await this.#samples(plan, Date.parse(last.since))
      const own = new Set(targets.of(plan.gateway).map(({ name }) => name))
      const late = last.proxies.find(
        (name) =>
          own.has(name) && !samples.some(({ proxy, endMs }) => proxy === name && endMs >= untilMs),
      )
      if (late !== undefined) return `proxy ${late} has not reported its figures`
    }
    return undefined
  }
}

const defaultHoldMs = 60_000

const holdMsOf = (plans: readonly RolloutPlan[]): number =>
  1_000 * Math.max(0, ...plans.map(({ holdSeconds }) => holdSeconds))

/** The steps of each Gateway that has some, by `namespace/name`. */
function plansOf({ graph }: Fold): ReadonlyMap<string, RolloutPlan> {
  const plans = new Map<string, RolloutPlan>()
  for (const [gateway, spec] of parametersInForce(graph, 'rollout')) {
    if (spec !== undefined) plans.set(gateway, planOf(gateway, spec))
  }
  return plans
}

function planOf(gateway: string, { steps, hold, analysis }: RolloutSpec): RolloutPlan {
  return {
    gateway,
    steps: steps.map(({ proxies }) => proxies),
    holdSeconds: (parseDurationMs(hold) ?? defaultHoldMs) / 1_000,
    analysis: (analysis as RolloutPlan['analysis'] | undefined) ?? ['Errors', 'Refusals'],
  }
}
