/**
 * What a newest version of an object passes before it is in force:
 *
 *   observed ──► judged (`changeProtection`) ──► delivered in steps (`rollout`) ──► not held by a pin ──► in force
 */
import type { SluiceEvent } from '../../../events/index.ts'
import type { ObjectKey } from '../../ground/model/names.ts'
import type { ObjectState } from '../desired/object-state.ts'
import { Pin, type StoredPin } from './pin.ts'
import { ProtectedChanges, type StoredChanges } from './protected-changes.ts'
import type { ResourceSnapshot } from './resource.machine.ts'
import { Rollouts, type StoredRollouts } from './rollouts.ts'

/** The stages in a snapshot. Those in which nothing waits are not set. */
export interface StoredStages {
  readonly pin?: StoredPin
  readonly changes?: StoredChanges
  readonly rollouts?: StoredRollouts
}

/** The actors with the versions in force. */
interface Actors {
  get(key: ObjectKey): ResourceSnapshot | undefined
  set(key: ObjectKey, snapshot: ResourceSnapshot): void
}

export class VersionStages {
  readonly #actors: Actors
  readonly pin: Pin
  readonly rollouts: Rollouts
  readonly changes: ProtectedChanges

  constructor(actors: Actors) {
    this.#actors = actors
    this.pin = new Pin({ ...actors, release: (key, newest) => this.#release(key, newest) })
    this.rollouts = new Rollouts({
      isListed: () => this.changes.isListed,
      isPinned: (newest) => this.pin.holds(newest),
      inForce: (key) => actors.get(key),
      pass: (key, version) => this.pin.put(key, version),
      mark: (key, delivery) => this.#mark(key, { delivery }),
    })
    this.changes = new ProtectedChanges({
      passed: (key) => this.#passed(key),
      pass: (key, version) => this.rollouts.put(key, version),
      mark: (key, message) => this.#mark(key, { waits: { message } }),
    })
  }

  /** Takes the newest version of an object. */
  put(key: ObjectKey, newest: ResourceSnapshot): void {
    this.changes.put(key, newest)
  }

  /** The newest version of an object, whether it is in force or not. */
  newest(key: ObjectKey): ResourceSnapshot | undefined {
    return this.changes.waiting.get(key)?.newest ?? this.#passed(key)
  }

  /** Puts the newest version of an object in force at once. Only for candidates, which are never delivered. */
  putInForce(key: ObjectKey): void {
    const newest = this.newest(key)
    if (newest !== undefined) this.#actors.set(key, newest)
  }

  /** Folds an event that lets versions pass or holds them. Returns false for other events. */
  apply(event: SluiceEvent, position: number): boolean {
    if (this.pin.apply(event, position)) {
      if (event.type === 'dev.sluice.pin.set.v1') this.rollouts.yieldToPin()
      this.changes.markAll()
      this.rollouts.markAll()
      return true
    }
    if (!this.changes.apply(event, position)) return this.rollouts.apply(event, position)
    if (event.type === 'dev.sluice.change.approved.v1' && event.data.emergency === true) {
      this.rollouts.passAll(position)
    }
    return true
  }

  /**
   * Notes an object in force, which may be the parameters of Gateways. A version that only the chosen proxies of a
   * rollout have is ignored, so that all other changes wait at these proxies as they do at the others.
   */
  noteObject(key: ObjectKey, state: ObjectState | undefined): void {
    if (this.rollouts.isOnlyInCandidate(key)) return
    this.changes.noteObject(key, state)
    this.rollouts.noteObject(key, state)
  }

  snapshot(): StoredStages {
    return { ...this.pin.snapshot(), ...this.changes.snapshot(), ...this.rollouts.snapshot() }
  }

  /** Forgets the parameters in force. Called before other objects replace those in force. */
  forget(): void {
    this.changes.forget()
    this.rollouts.forget()
  }

  /** Restores a snapshot. The objects in force must be restored first. */
  restore({ pin, changes, rollouts }: StoredStages): void {
    this.pin.restore(pin)
    this.changes.restore(changes)
    this.rollouts.restore(rollouts)
  }

  /** The newest version of an object that was judged, or need not be. */
  #passed(key: ObjectKey): ResourceSnapshot | undefined {
    const waiting = this.rollouts.waiting.get(key)?.newest
    return waiting ?? this.pin.newest.get(key) ?? this.#actors.get(key)
  }

  /** Delivers a version that a pin has held. */
  #release(key: ObjectKey, newest: ResourceSnapshot): void {
    const actor = this.#actors.get(key)
    if (actor?.context.state?.held !== undefined) {
      const { held: _, ...state } = actor.context.state
      this.#actors.set(key, { ...actor, context: { ...actor.context, state } })
    }
    this.rollouts.put(key, newest)
  }

  /** Sets why the newest version of an object is not in force. Conditions of the object show it. */
  #mark(key: ObjectKey, mark: Partial<Pick<ObjectState, 'waits' | 'delivery'>>): void {
    const actor = this.#actors.get(key)
    const { state } = actor?.context ?? {}
    if (actor === undefined || state === undefined) return
    const context = { ...actor.context, state: { ...state, ...mark } }
    this.#actors.set(key, { ...actor, context })
  }
}
