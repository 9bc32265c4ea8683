/**
 * The pin: an operator holds the configuration of an earlier moment in force. The newest version of an object that is
 * held is kept here, and takes effect when the pin is lifted. The actor of the object has the version in force.
 *
 * ```
 *   no pin ── PinSet ──► pinned ── PinLifted, or its time is over ──► no pin
 *                          └─ PinSet ─► pinned (the new one counts)
 * ```
 */
import type { PinnedObject, PinSetData, SluiceEvent } from '../../../events/index.ts'
import { type ObjectKey, type ObjectRef, objectKey } from '../../ground/model/names.ts'
import { newestGeneration, type ObservedObject, waitsText } from '../desired/object-state.ts'
import { hasSameContent } from '../desired/same-content.ts'
import { FoldTimers, type PendingTimer } from './delivery-timers.ts'
import { absentResource, type ResourceSnapshot, takingEffect } from './resource.machine.ts'

/** Kinds that say how the cluster is, not how it should be, or that give and revoke permissions. */
const heldOnlyIfNamed: ReadonlySet<string> = new Set([
  'ConfigMap',
  'EndpointSlice',
  'Namespace',
  'Pod',
  'ReferenceGrant',
  'Secret',
  'Service',
])

/** Whether a pin of the whole configuration holds objects of a kind. */
export const isHeldKind = (kind: string): boolean => !heldOnlyIfNamed.has(kind)

/** Kinds whose last content stays in force until their deletion may take effect, because policies in force may use it. */
const heldIfDeleted: ReadonlySet<string> = new Set(['ConfigMap', 'Secret'])

/** Returns whether a new version of an object must wait like other changes of the configuration. */
export const isHeldVersion = ({ context: { ref, state } }: ResourceSnapshot): boolean =>
  isHeldKind(ref.kind) || (state === undefined && heldIfDeleted.has(ref.kind))

/** A pin, and when and by which event it was set. */
export interface PinState extends Omit<PinSetData, 'objects' | 'part'> {
  /** Position of the event that set it. */
  readonly position: number
  /** Time of that event (RFC 3339). */
  readonly since: string
}

/** A pin whose last event has not come yet. It is never changed in place, since snapshots share it. */
interface IncomingPin {
  readonly pin: string
  /** Number of its last part. */
  readonly number: number
  readonly objects: readonly PinnedObject[]
}

/** A pin in a snapshot. */
export interface StoredPin {
  /** Not set if there is only an incoming one. */
  readonly pin?: PinState
  readonly incoming?: IncomingPin
  /** The newest versions of the objects that are held. */
  readonly newest: readonly (readonly [ObjectKey, ResourceSnapshot])[]
  readonly timers: readonly PendingTimer[]
}

/** The actors with the versions in force. */
interface Actors {
  get(key: ObjectKey): ResourceSnapshot | undefined
  set(key: ObjectKey, snapshot: ResourceSnapshot): void
  /** Takes the newest version of an object that is no longer held. */
  release(key: ObjectKey, newest: ResourceSnapshot): void
}

const timerPrefix = 'pin:'

export class Pin {
  readonly #actors: Actors
  #state: PinState | undefined
  readonly #newest = new Map<ObjectKey, ResourceSnapshot>()
  #timers = new FoldTimers()
  #incoming: IncomingPin | undefined

  constructor(actors: Actors) {
    this.#actors = actors
  }

  get state(): PinState | undefined {
    return this.#state
  }

  /** The newest versions of the objects that are held, by their keys. */
  get newest(): ReadonlyMap<ObjectKey, ResourceSnapshot> {
    return this.#newest
  }

  get timers(): readonly PendingTimer[] {
    return this.#timers.list
  }

  /** Folds an event about the pin. Returns false for other events. */
  apply(event: SluiceEvent, position: number): boolean {
    if (event.type === 'dev.sluice.pin.set.v1') {
      this.#take(event.data, position, event.time)
      return true
    }
    if (event.type === 'dev.sluice.timer.fired.v1') {
      if (!this.#timers.fire(event.data)) return false
    } else if (event.type !== 'dev.sluice.pin.lifted.v1') return false
    this.#lift(position)
    return true
  }

  /** Puts the newest version of an object in force, or keeps it until the pin is lifted. */
  put(key: ObjectKey, newest: ResourceSnapshot): void {
    const inForce = this.#actors.get(key)
    const isHeld = this.holds(newest) && !this.#hasSameObject(inForce, newest)
    if (isHeld && this.#state?.untilChanged !== true) this.#hold(key, inForce, newest)
    else {
      this.#newest.delete(key)
      this.#actors.set(key, newest)
    }
  }

  snapshot(): { readonly pin?: StoredPin } {
    const incoming = this.#incoming
    if (this.#state === undefined && incoming === undefined) return {}
    return {
      pin: {
        ...(this.#state && { pin: this.#state }),
        ...(incoming && { incoming }),
        newest: [...this.#newest],
        timers: this.#timers.list,
      },
    }
  }

  restore(stored: StoredPin | undefined): void {
    this.#state = stored?.pin
    this.#incoming = stored?.incoming
    this.#newest.clear()
    for (const [key, snapshot] of stored?.newest ?? []) this.#newest.set(key, snapshot)
    this.#timers.restore(stored?.timers ?? [])
  }

  /** Whether the pin holds an earlier version of an object instead of a newer one. */
  holds(newer: ResourceSnapshot): boolean {
    if (this.#state === undefined) return false
    const { only } = this.#state
    if (only === undefined) return isHeldVersion(newer)
    const { kind, namespace, name } = newer.context.ref
    return only.some((one) => one.kind === kind && one.namespace === namespace && one.name === name)
  }

  /** A manifest that was changed back to the pinned content does not wait. */
  #hasSameObject(inForce: ResourceSnapshot | undefined, newest: ResourceSnapshot): boolean {
    const { state } = newest.context
    if (state?.refused !== undefined) return false
    return hasSameContent(inForce?.context.state?.object, state?.object)
  }

  /** Returns the objects of a pin with its last event. Parts of a pin that another one has interrupted count for nothing. */
  #collect({ objects, part }: PinSetData): ReadonlyMap<ObjectKey, PinnedObject> | undefined {
    const { pin, number, count } = part ?? { pin: '', number: 1, count: 1 }
    const before = this.#incoming
    const follows = before?.pin === pin && before.number === number - 1
    if (!follows && number !== 1) return undefined
    const all = [...(follows ? before.objects : []), ...objects]
    this.#incoming = number < count ? { pin, number, objects: all } : undefined
    return number < count ? undefined : new Map(all.map((one) => [objectKey(one), one]))
  }

  #take(data: PinSetData, position: number, time: string): void {
    const pinned = this.#collect(data)
    if (pinned === undefined) return
    const { objects: _, part: __, ...rest } = data
    const before = new Map(this.#newest)
    this.#newest.clear()
    this.#state = { ...rest, position, since: time }
    for (const [key, one] of pinned) {
      const newest = before.get(key) ?? this.#actors.get(key) ?? absentResource(refOf(one))
      before.delete(key)
      this.#hold(key, pinnedSnapshot(one, position, time), newest)
    }
    for (const [key, newest] of before) this.#actors.set(key, takingEffect(newest, position))
    const timers = new Set(rest.until === undefined ? [] : [`${timerPrefix}${position}`])
    this.#timers = new FoldTimers()
    const now = Date.parse(time)
    this.#timers.want(timers, now, Math.max(0, Date.parse(rest.until ?? time) - now), timerPrefix)
  }

  #lift(position: number): void {
    this.#state = undefined
    this.#timers = new FoldTimers()
    const newest = [...this.#newest]
    this.#newest.clear()
    for (const [key, snapshot] of newest)
      this.#actors.release(key, takingEffect(snapshot, position))
  }

  /** The version in force gets the condition `Pinned`, which names the one that waits. */
  #hold(key: ObjectKey, inForce: ResourceSnapshot | undefined, newest: ResourceSnapshot): void {
    this.#newest.set(key, newest)
    const { state } = inForce?.context ?? {}
    if (inForce === undefined || state === undefined) {
      this.#actors.set(key, absentResource(newest.context.ref))
      return
    }
    const held = { message: this.#message(newest) }
    this.#actors.set(key, {
      ...inForce,
      context: { ...inForce.context, state: { ...state, held } },
    })
  }

  #message({ context }: ResourceSnapshot): string {
    const { to = 0, author, reason, until } = this.#state ?? {}
    const waits = waitsText(newestGeneration(context.state))
    const end = until === undefined ? 'until the pin is lifted' : `until ${until}`
    return `held at the configuration of position ${to} by ${author} (${reason}): ${waits} ${end}`
  }
}

const refOf = ({ kind, namespace, name }: ObjectRef): ObjectRef => ({ kind, namespace, name })

/** The actor of an object with a version that is put in force again. */
function pinnedSnapshot(pinned: PinnedObject, sequence: number, time: string): ResourceSnapshot {
  const ref = refOf(pinned)
  const { version } = pinned
  if (version === undefined) return absentResource(ref)
  const { uid, resourceVersion, generation, age, object } = version
  const state = {
    ref,
    uid,
    resourceVersion,
    generation,
    // Proxies have it in force once they have acknowledged the pin.
    generationSequence: sequence,
    age,
    object: object as ObservedObject,
    refused: undefined,
  }
  const firstSeen = { sequence, timeMs: Date.parse(time) }
  return { value: 'inForce', context: { ref, firstSeen, state } }
}
