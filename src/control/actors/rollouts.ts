/**
 * Changes that are delivered in steps. If GatewayParameters have a `rollout`, a new version of an object is not in
 * force before an event says so:
 *
 * ```
 *   passed ──► waiting ── RolloutSkipped ──────────────────────► in force
 *                │  ▲ a newer version of one of its objects         ▲
 *         RolloutStarted                                            │
 *                ▼  │                                               │
 *       in a rollout, in force at a part of the proxies ── RolloutEnded: Finished
 *                └─ RolloutEnded: RolledBack ─► rolled back: only a newer version is delivered
 * ```
 *
 * The fold derives the versions in force. What the chosen proxies get is derived by a second fold, the candidate.
 */
import type { JudgedObject, RolloutEndedData, SluiceEvent } from '../../../events/index.ts'
import { type ObjectKey, objectKey } from '../../ground/model/names.ts'
import { newestGeneration, type ObjectState } from '../desired/object-state.ts'
import { isNewestVersion, isSameChange, isSameObject } from './judged-versions.ts'
import { isHeldVersion } from './pin.ts'
import { type ResourceSnapshot, takingEffect } from './resource.machine.ts'
import {
  nextRollout,
  type RolloutInput,
  type RolloutSnapshot,
  startedRollout,
} from './rollout.machine.ts'

/** The newest version of an object, which is not in force at all proxies. */
interface WaitingVersion {
  readonly newest: ResourceSnapshot
  /** Position of its rollout; not set before it starts. */
  readonly rollout?: number
}

/** The rollouts in a snapshot. */
export interface StoredRollouts {
  readonly waiting: readonly (readonly [ObjectKey, WaitingVersion])[]
  readonly rollouts: readonly RolloutSnapshot[]
}

interface Versions {
  /** Whether a complete listing was observed: the first configuration is not a change. */
  isListed(): boolean
  /** Whether an operator holds an earlier version of the object, so that a newer one is not delivered. */
  isPinned(newer: ResourceSnapshot): boolean
  inForce(key: ObjectKey): ResourceSnapshot | undefined
  /** Puts a version in force. */
  pass(key: ObjectKey, version: ResourceSnapshot): void
  /** Sets how far the newest version of an object is delivered; undefined if it is in no rollout. */
  mark(key: ObjectKey, delivery: ObjectState['delivery']): void
}

export class Rollouts {
  readonly #versions: Versions
  /** GatewayParameters in force with a `rollout`. */
  readonly #parameters = new Set<ObjectKey>()
  readonly #waiting = new Map<ObjectKey, WaitingVersion>()
  readonly #rollouts = new Map<number, RolloutSnapshot>()
  #isCandidate = false

  constructor(versions: Versions) {
    this.#versions = versions
  }

  get waiting(): ReadonlyMap<ObjectKey, WaitingVersion> {
    return this.#waiting
  }

  /** The rollouts that are not finished, by position. At most one of them is not rolled back. */
  get rollouts(): ReadonlyMap<number, RolloutSnapshot> {
    return this.#rollouts
  }

  /** The rollout that is under way or paused. */
  get running(): RolloutSnapshot | undefined {
    return this.#rollouts.values().find(({ value }) => value !== 'rolledBack')
  }

  /** The objects of a rollout. */
  objectsOf(position: number): ObjectKey[] {
    return [...this.#waiting].flatMap(([key, { rollout }]) => (rollout === position ? [key] : []))
  }

  /** Puts the newest version of an object in force, or lets it wait. */
  put(key: ObjectKey, newest: ResourceSnapshot): void {
    const before = this.#waiting.get(key)
    if (!this.#isDelivered(key, newest)) {
      if (before !== undefined) this.#dissolve(before)
      this.#waiting.delete(key)
      this.#versions.pass(key, newest)
      return
    }
    if (before !== undefined && !isSameChange(before.newest, newest)) this.#dissolve(before)
    const rollout = this.#waiting.get(key)?.rollout
    this.#waiting.set(key, { newest, ...(rollout !== undefined && { rollout }) })
    if (rollout === undefined) return
    if (this.#isCandidate && !this.#versions.isPinned(newest)) this.#versions.pass(key, newest)
    else this.#mark(key)
  }

  /** Whether this fold is a candidate that has a version of the running rollout in force. */
  isOnlyInCandidate(key: ObjectKey): boolean {
    return this.#isCandidate && this.#waiting.get(key)?.rollout !== undefined
  }

  /** Notes an object in force, which may be the parameters of Gateways. */
  noteObject(key: ObjectKey, state: ObjectState | undefined): void {
    if (!key.startsWith('GatewayParameters/')) return
    const { rollout } = (state?.object?.spec ?? {}) as { readonly rollout?: unknown }
    if (rollout === undefined) this.#parameters.delete(key)
    else this.#parameters.add(key)
  }

  /** Folds an event about rollouts. Returns false for other events. */
  apply(event: SluiceEvent, position: number): boolean {
    switch (event.type) {
      case 'dev.sluice.rollout.started.v1': {
        const { objects, plans } = event.data
        this.#start(objects, startedRollout(position, event.time, plans))
        return true
      }
      case 'dev.sluice.rollout.skipped.v1':
        this.#skip(event.data.objects, position)
        return true
      case 'dev.sluice.rollout.stepped.v1': {
        const { rollout, step: number, proxies } = event.data
        this.#send(rollout, {
          type: 'STEPPED',
          step: { number, proxies, since: event.time, position },
        })
        return true
      }
      case 'dev.sluice.rollout.paused.v1':
        this.#send(event.data.rollout, { type: 'PAUSED', ...reasonOf(event.data) })
        return true
      case 'dev.sluice.rollout.resumed.v1':
        this.#send(event.data.rollout, { type: 'RESUMED', since: event.time })
        return true
      case 'dev.sluice.rollout.ended.v1':
        this.#end(event.data, position)
        return true
      default:
        return false
    }
  }

  /** Puts everything in force that waits, in an emergency, except for what was rolled back. */
  passAll(position: number): void {
    for (const [key, { rollout = 0 }] of [...this.#waiting]) {
      if (this.#rollouts.get(rollout)?.value !== 'rolledBack') this.#pass(key, position)
    }
    for (const [rollout, { value }] of this.#rollouts) {
      if (value !== 'rolledBack') this.#rollouts.delete(rollout)
    }
  }

  /** Lets a new pin hold what was about to be delivered. What was rolled back stays out of force. */
  yieldToPin(): void {
    for (const [key, { rollout }] of [...this.#waiting]) {
      const one = this.#waiting.get(key)
      if (one === undefined || !this.#versions.isPinned(one.newest)) continue
      if (rollout !== undefined && this.#rollouts.get(rollout)?.value === 'rolledBack') continue
      this.#dissolve(one)
      this.#waiting.delete(key)
      this.#versions.pass(key, one.newest)
    }
  }

  /** Marks the objects in force again, after something else has replaced them. */
  markAll(): void {
    for (const [key, { rollout }] of this.#waiting) if (rollout !== undefined) this.#mark(key)
  }

  /** From now on, this fold has in force what the chosen proxies of the running rollout get. */
  becomeCandidate(): void {
    this.#isCandidate = true
    const { position = 0 } = this.running?.context ?? {}
    for (const key of this.objectsOf(position)) {
      const newest = this.#waiting.get(key)?.newest
      if (newest !== undefined) this.#versions.pass(key, newest)
    }
  }

  snapshot(): { readonly rollouts?: StoredRollouts } {
    if (this.#waiting.size === 0) return {}
    return { rollouts: { waiting: [...this.#waiting], rollouts: [...this.#rollouts.values()] } }
  }

  /** Forgets the parameters in force. Called before other objects replace those in force. */
  forget(): void {
    this.#parameters.clear()
  }

  /** Restores a snapshot. The objects in force must be restored first. */
  restore(stored: StoredRollouts | undefined): void {
    this.#isCandidate = false
    this.#waiting.clear()
    this.#rollouts.clear()
    for (const [key, version] of stored?.waiting ?? []) this.#waiting.set(key, version)
    for (const one of stored?.rollouts ?? []) this.#rollouts.set(one.context.position, one)
  }

  /** Whether a version waits for a rollout. If no steps concern it, RolloutSkipped lets it pass. */
  #isDelivered(key: ObjectKey, newest: ResourceSnapshot): boolean {
    if (this.#parameters.size === 0 || !this.#versions.isListed()) return false
    if (!isHeldVersion(newest) || this.#versions.isPinned(newest)) return false
    const compared = this.#isCandidate ? undefined : this.#versions.inForce(key)
    return this.#isCandidate || !isSameObject(compared, newest)
  }

  #start(objects: readonly JudgedObject[], rollout: RolloutSnapshot): void {
    const keys = objects.map(objectKey)
    const isFree = (one: JudgedObject) => this.#waiting.get(objectKey(one))?.rollout === undefined
    if (this.running !== undefined || objects.length === 0) return
    if (!objects.every((one) => this.#isNewest(one) && isFree(one))) return
    const { position } = rollout.context
    this.#rollouts.set(position, rollout)
    for (const key of keys) {
      const version = this.#waiting.get(key)
      if (version === undefined) continue
      this.#waiting.set(key, { newest: version.newest, rollout: position })
      this.#mark(key)
    }
  }

  #skip(objects: readonly JudgedObject[], position: number): void {
    if (!objects.every((one) => this.#isNewest(one))) return
    for (const one of objects) {
      const version = this.#waiting.get(objectKey(one))
      if (version?.rollout === undefined) this.#pass(objectKey(one), position)
    }
  }

  #send(position: number, input: RolloutInput): void {
    const before = this.#rollouts.get(position)
    if (before === undefined) return
    const after = nextRollout(before, input)
    if (after === before) return
    this.#rollouts.set(position, after)
    for (const key of this.objectsOf(position)) this.#mark(key)
  }

  #end({ rollout, outcome, ...data }: RolloutEndedData, position: number): void {
    if (outcome === 'RolledBack') {
      this.#send(rollout, { type: 'ROLLED_BACK', ...reasonOf(data) })
      return
    }
    if (!this.#rollouts.delete(rollout)) return
    for (const key of this.objectsOf(rollout)) this.#pass(key, position)
  }

  #pass(key: ObjectKey, position: number): void {
    const version = this.#waiting.get(key)
    if (version === undefined) return
    this.#waiting.delete(key)
    this.#versions.pass(key, takingEffect(version.newest, position))
  }

  /** Ends a rollout, because one of its objects has changed again. The others wait for the next one. */
  #dissolve({ rollout }: WaitingVersion): void {
    if (rollout === undefined || !this.#rollouts.delete(rollout)) return
    for (const [key, one] of this.#waiting) {
      if (one.rollout !== rollout) continue
      this.#waiting.set(key, { newest: one.newest })
      this.#mark(key)
    }
  }

  #isNewest(one: JudgedObject): boolean {
    return isNewestVersion(this.#waiting.get(objectKey(one))?.newest, one)
  }

  #mark(key: ObjectKey): void {
    const one = this.#waiting.get(key)
    const rollout = one?.rollout === undefined ? undefined : this.#rollouts.get(one.rollout)
    this.#versions.mark(key, one && rollout && deliveryOf(rollout, one.newest))
  }
}

const reasonOf = ({ reason, author }: { readonly reason: string; readonly author?: string }) => ({
  reason,
  ...(author !== undefined && { author }),
})

/** The condition of an object whose newest version is in a rollout. */
function deliveryOf(
  { value, context }: RolloutSnapshot,
  newest: ResourceSnapshot,
): ObjectState['delivery'] {
  const { position, steps, plans, reason = '', author } = context
  const generation = newestGeneration(newest.context.state)
  const what = generation === undefined ? 'its deletion' : `generation ${generation}`
  const by = author === undefined ? '' : ` by ${author}`
  const see = `see: sluice rollout ${position}`
  if (value === 'rolledBack') {
    const message = `${what} was rolled back${by}: ${reason}; it waits until the object changes again; ${see}`
    return {
      type: 'RolledBack',
      reason: author === undefined ? 'WorseFigures' : 'ByOperator',
      message,
    }
  }
  const last = steps.at(-1)
  const count = Math.max(0, ...plans.map((plan) => plan.steps.length))
  const size = last?.proxies.length ?? 0
  const where =
    last === undefined
      ? `${what} is not delivered yet`
      : `${what} is delivered to ${size} ${size === 1 ? 'proxy' : 'proxies'} (step ${last.number} of ${count})`
  if (value === 'paused') {
    const message = `${where}, paused${by}: ${reason}; ${see}`
    return { type: 'Paused', reason: author === undefined ? 'NoAnswer' : 'ByOperator', message }
  }
  return { type: 'Progressing', reason: 'InSteps', message: `${where}; ${see}` }
}
