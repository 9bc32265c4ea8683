/** Which versions of objects must stay in force, by rules that are independent of the fold. */
import { changeHeld, rolloutStarted, type SluiceEvent } from '../../events/index.ts'
import type { Recorded } from '../../src/control/log/index.ts'
import { type ObjectKey, type ObjectRef, objectKey } from '../../src/ground/model/names.ts'

const free = new Set([
  'ConfigMap',
  'EndpointSlice',
  'Namespace',
  'Pod',
  'ReferenceGrant',
  'Secret',
  'Service',
])

const decisions =
  /\.(pin\.set|pin\.lifted|change\.(passed|held|approved|rejected)|rollout\.[a-z]+)\.v1$/

/** Whether a pin, a protection or a rollout can keep objects of a kind. */
export const isKeptKind = (kind: string): boolean => !free.has(kind)

export class KeptVersions {
  readonly #modeInForce: () => string
  readonly #isStepped: () => boolean
  readonly #waiting: () => Iterable<ObjectKey>
  #isPinned = false
  /** The time at which the pin ends without an operator. */
  #until: string | undefined
  #isListed = false
  /** The objects of held changes and of rollouts, by the positions of the events. */
  readonly #objects = new Map<number, readonly ObjectKey[]>()

  /**
   * `modeInForce` is the mode of `changeProtection`, `isStepped` says whether changes are delivered in steps, and
   * `waiting` are the objects that an approval or the end of a rollout may release.
   */
  constructor(
    modeInForce: () => string,
    isStepped: () => boolean,
    waiting: () => Iterable<ObjectKey>,
  ) {
    this.#modeInForce = modeInForce
    this.#isStepped = isStepped
    this.#waiting = waiting
  }

  /** The objects whose versions in force must not change with an event. */
  keys(event: SluiceEvent): ObjectKey[] {
    const isStepped = this.#isListed && this.#isStepped()
    const isProtected = (this.#isListed && this.#modeInForce() !== 'Off') || isStepped
    switch (event.type) {
      case 'dev.sluice.resource.applied.v1':
      case 'dev.sluice.resource.refused.v1':
      case 'dev.sluice.resource.deleted.v1': {
        const { kind, namespace, name } = event.data as ObjectRef
        const isKept = isKeptKind(kind) && (this.#isPinned || isProtected)
        return isKept ? [objectKey({ kind, namespace, name })] : []
      }
      case 'dev.sluice.change.held.v1':
      case 'dev.sluice.change.rejected.v1':
        return [...this.#waiting()]
      case 'dev.sluice.change.passed.v1':
        return this.#isPinned || isStepped
          ? [...this.#waiting()]
          : this.#others(event.data.changes.flat().map(objectKey))
      case 'dev.sluice.change.approved.v1': {
        const { held, emergency } = event.data
        if (this.#isPinned || (isStepped && emergency !== true)) return [...this.#waiting()]
        return emergency === true ? [] : this.#others(this.#objects.get(held ?? 0))
      }
      case 'dev.sluice.rollout.started.v1':
      case 'dev.sluice.rollout.stepped.v1':
      case 'dev.sluice.rollout.paused.v1':
      case 'dev.sluice.rollout.resumed.v1':
        return [...this.#waiting()]
      case 'dev.sluice.rollout.skipped.v1':
        return this.#others(event.data.objects.map(objectKey))
      case 'dev.sluice.rollout.ended.v1': {
        const { rollout, outcome } = event.data
        return outcome === 'RolledBack'
          ? [...this.#waiting()]
          : this.#others(this.#objects.get(rollout))
      }
      default:
        return []
    }
  }

  /** The objects that wait, without those that an event names. */
  #others(named: Iterable<ObjectKey> = []): ObjectKey[] {
    const released = new Set(named)
    return [...this.#waiting()].filter((key) => !released.has(key))
  }

  get isPinned(): boolean {
    return this.#isPinned
  }

  /** Returns whether the event decides about a pin or a change. */
  take({ position, event }: Recorded): boolean {
    if (event.type === changeHeld.type || event.type === rolloutStarted.type) {
      this.#objects.set(position, event.data.objects.map(objectKey))
    }
    if (event.type === 'dev.sluice.pin.set.v1') {
      this.#isPinned = true
      this.#until = event.data.until
    }
    const isOver = event.type === 'dev.sluice.timer.fired.v1' && event.data.dueAt === this.#until
    if (isOver || event.type === 'dev.sluice.pin.lifted.v1') this.#isPinned = false
    if (event.type === 'dev.sluice.relist.finished.v1') this.#isListed = true
    return isOver || decisions.test(event.type)
  }
}
