/** The decisions that are not in the log yet. */
import { conditionsDecided, desiredPublished, type SluiceEvent } from '../../../events/index.ts'
import { canonicalBytes } from '../../ground/base/canonical.ts'
import { hexDigest } from '../../ground/base/digest.ts'
import { type ObjectKey, objectKey } from '../../ground/model/names.ts'
import { type FoldChange, foldVersion } from '../actors/fold.ts'
import { maxCauses } from '../actors/status-causes.ts'
import type { StatusChange } from '../actors/status-changes.ts'

/** A status that is to be recorded, with the positions of the events that changed it since the last decision. */
export interface Unrecorded extends StatusChange {
  readonly causes: readonly number[]
}

interface Entry {
  readonly status: StatusChange
  readonly causes: readonly number[]
}

/** The last decision about an object in the log. */
interface RecordedStatus {
  readonly digest: string
  /** Position up to which changes are recorded. */
  readonly upTo: number
}

/** An object that has no status of ours any more is recorded with an empty one. */
const none = {}

export class UnrecordedDecisions {
  readonly #recorded = new Map<ObjectKey, RecordedStatus>()
  /** Many if the replica that writes has died. */
  readonly #unrecorded = new Map<ObjectKey, Entry>()
  /** Position after which all changes are recorded by this fold version, with their causes. */
  #recordedSince: number

  constructor(recordedSince: number) {
    this.#recordedSince = recordedSince
  }

  get recordedSince(): number {
    return this.#recordedSince
  }

  /** Applies a decision of any replica. */
  remember(position: number, event: SluiceEvent): void {
    if (event.type === desiredPublished.type) {
      const isOwn = event.data.foldVersion === foldVersion
      this.#recordedSince = (isOwn ? event.data.recordedSince : undefined) ?? position
    }
    if (event.type !== conditionsDecided.type) return
    const key = objectKey(event.data)
    const { causes, status } = event.data
    const upTo = causes?.at(-1) ?? position
    this.#recorded.set(key, { digest: digestOf(status), upTo })
    const entry = this.#unrecorded.get(key)
    if (entry !== undefined) this.#put(key, entry)
  }

  /** Adds the changes of the fold since the last call. */
  note({ statuses, dropped, causes }: FoldChange): void {
    const gone = dropped.map((ref) => ({ ref, generation: 0, status: none }))
    for (const status of [...statuses, ...gone]) {
      const key = objectKey(status.ref)
      const before = this.#unrecorded.get(key)?.causes ?? []
      const all = [...before, ...(causes.get(key) ?? [])]
      this.#put(key, { status, causes: all })
    }
  }

  /** Removes and returns everything that is to be recorded. */
  take(): Unrecorded[] {
    const all = [...this.#unrecorded.values()]
    this.#unrecorded.clear()
    return all.map(({ status, causes }) => ({ ...status, causes }))
  }

  /** Takes back what could not be recorded. A later status replaces it. */
  putBack(unrecorded: readonly Unrecorded[]): void {
    for (const { causes, ...status } of unrecorded) {
      const key = objectKey(status.ref)
      const later = this.#unrecorded.get(key) ?? { status, causes: [] }
      this.#put(key, { ...later, causes: [...causes, ...later.causes] })
    }
  }

  /** Keeps what differs from the last decision in the log, or has changed since. */
  #put(key: ObjectKey, { status, causes }: Entry): void {
    const recorded = this.#recorded.get(key)
    const open = causes.filter((cause) => cause > (recorded?.upTo ?? 0)).slice(0, maxCauses + 1)
    if (open.length > 0 || recorded?.digest !== digestOf(status.status)) {
      this.#unrecorded.set(key, { status, causes: open })
      return
    }
    this.#unrecorded.delete(key)
    if (status.status === none) this.#recorded.delete(key)
  }
}

/** A short digest to distinguish statuses of one object. */
function digestOf(status: unknown): string {
  return hexDigest('sha256', canonicalBytes(status)).slice(0, 16)
}
