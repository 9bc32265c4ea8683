/**
 * Changes that wait. Under `changeProtection`, a new version of an object is not in force before an event says so:
 *
 * ```
 *   observed ──► waiting ── ChangePassed ──► in force
 *                  │  ▲ a newer version of one of its objects
 *              ChangeHeld
 *                  ▼  │
 *                 held ── ChangeApproved ──► in force
 *                  └─ ChangeRejected ─► rejected: only a newer version is judged again
 * ```
 *
 * The leader judges what waits and appends the event. The fold only applies it, so that a replay, a replica and a
 * new leader agree, and a change that no leader has judged yet stays out of force.
 */
import type {
  ChangeHeldData,
  ChangePassedData,
  JudgedObject,
  ProtectionSetData,
  SluiceEvent,
} from '../../../events/index.ts'
import { type ObjectKey, objectKey } from '../../ground/model/names.ts'
import { newestGeneration, type ObjectState, waitsText } from '../desired/object-state.ts'
import { isNewestVersion, isSameChange, isSameObject } from './judged-versions.ts'
import { isHeldKind, isHeldVersion } from './pin.ts'
import { type ResourceSnapshot, takingEffect } from './resource.machine.ts'

/** The newest version of an object, which is not in force. */
interface WaitingVersion {
  readonly newest: ResourceSnapshot
  /** Position of the ChangeHeld event; omitted if the version was not judged yet. */
  readonly held?: number
}

/** A change that is held. */
export interface HeldChange extends Omit<ChangeHeldData, 'objects'> {
  /** Position of its event, by which it is approved. */
  readonly position: number
  /** Time of its event (RFC 3339). */
  readonly since: string
  readonly rejected?: { readonly reason: string; readonly author: string }
}

/** The waiting changes in a snapshot. */
export interface StoredChanges {
  readonly isListed: boolean
  readonly mode: ProtectionSetData['mode']
  readonly waiting: readonly (readonly [ObjectKey, WaitingVersion])[]
  readonly held: readonly HeldChange[]
}

interface Versions {
  /** The last version that may be in force, even if a pin holds an earlier one. */
  passed(key: ObjectKey): ResourceSnapshot | undefined
  /** Lets a version pass. */
  pass(key: ObjectKey, version: ResourceSnapshot): void
  /** Sets why a later version of an object in force waits. */
  mark(key: ObjectKey, message: string): void
}

export class ProtectedChanges {
  readonly #versions: Versions
  /** Whether a complete listing was observed: the first configuration is not a change. */
  #isListed = false
  #mode: ProtectionSetData['mode'] = 'Off'
  /** GatewayParameters in force that judge changes. */
  readonly #parameters = new Set<ObjectKey>()
  readonly #waiting = new Map<ObjectKey, WaitingVersion>()
  readonly #held = new Map<number, HeldChange>()
  #revision = 0

  constructor(versions: Versions) {
    this.#versions = versions
  }

  /** Whether a complete listing was observed. */
  get isListed(): boolean {
    return this.#isListed
  }

  /** The mode of Gateways whose parameters have no `changeProtection`. */
  get mode(): ProtectionSetData['mode'] {
    return this.#mode
  }

  get waiting(): ReadonlyMap<ObjectKey, WaitingVersion> {
    return this.#waiting
  }

  /** The changes that are held, by the positions of their events. */
  get held(): ReadonlyMap<number, HeldChange> {
    return this.#held
  }

  /** Rises when an object takes effect on which the judgement of a held change may depend. */
  get revision(): number {
    return this.#revision
  }

  /** Puts the newest version of an object in force, or lets it wait. */
  put(key: ObjectKey, newest: ResourceSnapshot): void {
    const before = this.#waiting.get(key)
    const passed = this.#versions.passed(key)
    if (!this.#isActive || !isHeldVersion(newest) || isSameObject(passed, newest)) {
      if (before !== undefined) this.#dissolve(before)
      this.#pass(key, newest)
      return
    }
    if (before?.held !== undefined && !isSameChange(before.newest, newest)) this.#dissolve(before)
    const held = this.#waiting.get(key)?.held
    this.#waiting.set(key, { newest, ...(held !== undefined && { held }) })
  }

  /** Notes an object in force, which may be the parameters of Gateways. */
  noteObject(key: ObjectKey, state: ObjectState | undefined): void {
    if (!key.startsWith('GatewayParameters/')) return
    const { changeProtection: protection } = (state?.object?.spec ?? {}) as {
      readonly changeProtection?: { readonly mode?: string }
    }
    if ((protection?.mode ?? 'Off') === 'Off') this.#parameters.delete(key)
    else this.#parameters.add(key)
  }

  /** Folds an event about changes that wait. Returns false for other events. */
  apply(event: SluiceEvent, position: number): boolean {
    switch (event.type) {
      case 'dev.sluice.relist.finished.v1':
        this.#isListed = true
        return false
      case 'dev.sluice.protection.set.v1':
        this.#mode = event.data.mode
        this.#revision++
        return true
      case 'dev.sluice.change.passed.v1':
        this.#letPass(event.data, position)
        return true
      case 'dev.sluice.change.held.v1':
        this.#hold(event.data, position, event.time)
        return true
      case 'dev.sluice.change.approved.v1':
        this.#release(event.data.emergency === true ? undefined : event.data.held, position)
        return true
      case 'dev.sluice.change.rejected.v1':
        this.#reject(event.data)
        return true
      default:
        return false
    }
  }

  /** Marks the objects in force again, after something else has replaced them. */
  markAll(): void {
    for (const [key, { held }] of this.#waiting) {
      if (held !== undefined) this.#mark(key, held)
    }
  }

  snapshot(): { readonly changes?: StoredChanges } {
    if (!this.#isListed && this.#mode === 'Off') return {}
    return {
      changes: {
        isListed: this.#isListed,
        mode: this.#mode,
        waiting: [...this.#waiting],
        held: [...this.#held.values()],
      },
    }
  }

  /** Forgets the parameters in force. Called before other objects replace those in force. */
  forget(): void {
    this.#parameters.clear()
  }

  /** Restores a snapshot. The objects in force must be restored first. */
  restore(stored: StoredChanges | undefined): void {
    this.#isListed = stored?.isListed ?? false
    this.#mode = stored?.mode ?? 'Off'
    this.#waiting.clear()
    this.#held.clear()
    for (const [key, version] of stored?.waiting ?? []) this.#waiting.set(key, version)
    for (const change of stored?.held ?? []) this.#held.set(change.position, change)
    this.#revision++
  }

  get #isActive(): boolean {
    return this.#isListed && (this.#mode !== 'Off' || this.#parameters.size > 0)
  }

  #pass(key: ObjectKey, version: ResourceSnapshot): void {
    this.#waiting.delete(key)
    if (this.#held.size > 0 && isHeldKind(version.context.ref.kind)) this.#revision++
    this.#versions.pass(key, version)
  }

  /** Forgets the judgement of a held change, because one of its objects has changed again. */
  #dissolve({ held }: WaitingVersion): void {
    if (held === undefined || !this.#held.delete(held)) return
    for (const [key, one] of this.#waiting) {
      if (one.held === held) this.#waiting.set(key, { newest: one.newest })
    }
  }

  #letPass({ changes }: ChangePassedData, position: number): void {
    for (const objects of changes) {
      if (!objects.every((one) => this.#isNewest(one))) continue
      for (const one of objects) {
        const version = this.#waiting.get(objectKey(one))
        if (version === undefined) continue
        this.#dissolve(version)
        this.#pass(objectKey(one), takingEffect(version.newest, position))
      }
    }
  }

  #hold({ objects, ...data }: ChangeHeldData, position: number, since: string): void {
    if (!objects.every((one) => this.#isNewest(one))) return
    for (const one of objects) {
      const before = this.#waiting.get(objectKey(one))
      if (before !== undefined) this.#dissolve(before)
    }
    this.#held.set(position, { ...data, position, since })
    for (const one of objects) {
      const key = objectKey(one)
      const version = this.#waiting.get(key)
      if (version === undefined) continue
      this.#waiting.set(key, { newest: version.newest, held: position })
      this.#mark(key, position)
    }
  }

  /** Lets a held change pass, or everything that waits. */
  #release(held: number | undefined, position: number): void {
    for (const [key, one] of [...this.#waiting]) {
      if (held !== undefined && one.held !== held) continue
      this.#pass(key, takingEffect(one.newest, position))
    }
    if (held === undefined) this.#held.clear()
    else this.#held.delete(held)
  }

  #reject({ held, ...rejected }: { held: number; reason: string; author: string }): void {
    const change = this.#held.get(held)
    if (change === undefined) return
    this.#held.set(held, { ...change, rejected })
    this.markAll()
  }

  #isNewest(one: JudgedObject): boolean {
    return isNewestVersion(this.#waiting.get(objectKey(one))?.newest, one)
  }

  #mark(key: ObjectKey, held: number): void {
    const change = this.#held.get(held)
    const newest = this.#waiting.get(key)?.newest
    if (change === undefined || newest === undefined) return
    this.#versions.mark(key, messageOf(change, newest))
  }
}

function messageOf({ position, unmet, rejected }: HeldChange, { context }: ResourceSnapshot) {
  const waits = waitsText(newestGeneration(context.state))
  if (rejected !== undefined) {
    const { author, reason } = rejected
    return `${waits}: change ${position} was rejected by ${author} (${reason}); a newer version is judged again`
  }
  const why = unmet.map(({ message }) => message).join('; ')
  return `${waits} in change ${position}: ${why}; approve it with: sluice approve ${position}`
}
