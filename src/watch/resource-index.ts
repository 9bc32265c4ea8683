import { createHash } from 'node:crypto'
import {
  EpochGate,
  type Origin,
  type ResourceEvent,
  type ResourceName,
  type SluiceEvent,
} from '../../events/index.ts'

/** What the log knows of one object, as far as a source needs it to tell what has changed. */
export interface IndexEntry extends ResourceName {
  readonly uid: string
  /** Of the version seen last, valid or refused. */
  readonly resourceVersion: string
  readonly generation: number
  /** Was the version seen last refused? */
  readonly isRefused: boolean
  /** Version of the last valid one; absent where there never was one. */
  readonly inForce?: string
  readonly origin?: Origin
}

/** The index as plain data, for a snapshot. */
export interface IndexState {
  readonly entries: readonly IndexEntry[]
  readonly incarnations: number
  readonly relists: number
  readonly epoch?: number
  /** Has a listing been completed? */
  readonly isListed?: boolean
}

/** `Kind/namespace/name`. */
export function keyOf({ kind, namespace, name }: ResourceName): string {
  return `${kind}/${namespace}/${name}`
}

/**
 * What one source has put into the log, folded from its events. On start it is read from the log,
 * and the source lists only the differences to it.
 */
export class ResourceIndex {
  readonly source: string
  #entries: Map<string, IndexEntry>
  #incarnations: number
  #relists: number
  #gate: EpochGate
  #isListed: boolean

  /** `source` is the source attribute of the events to follow; those of others are passed over. */
  constructor(source: string, state?: IndexState) {
    this.source = source
    this.#entries = new Map(state?.entries.map((entry) => [keyOf(entry), entry]))
    this.#incarnations = state?.incarnations ?? 0
    this.#relists = state?.relists ?? 0
    this.#gate = new EpochGate(state?.epoch)
    this.#isListed = state?.isListed ?? false
  }

  /** Another index that knows the same, and goes its own way. */
  copy(): ResourceIndex {
    return new ResourceIndex(this.source, this.toState())
  }

  apply(event: SluiceEvent): void {
    if (!this.#gate.admits(event) || event.source !== this.source) return
    switch (event.type) {
      case 'dev.sluice.resource.applied.v1': {
        const { object: _, programmed: __, ...data } = event.data
        this.#put({ ...data, isRefused: false, inForce: data.resourceVersion })
        return
      }
      case 'dev.sluice.resource.refused.v1': {
        const { problems: _, targets: __, appliesTo: ___, ...data } = event.data
        const before = this.#entries.get(keyOf(data))
        const inForce = before?.uid === data.uid ? before.inForce : undefined
        this.#put({ ...data, isRefused: true, inForce })
        return
      }
      case 'dev.sluice.resource.deleted.v1':
        this.#entries.delete(keyOf(event.data))
        return
      case 'dev.sluice.relist.started.v1':
        this.#relists++
        return
      case 'dev.sluice.relist.finished.v1':
        this.#isListed = true
        return
      default:
        return
    }
  }

  applyAll(events: readonly ResourceEvent[]): void {
    for (const event of events) this.apply(event)
  }

  get(key: string): IndexEntry | undefined {
    return this.#entries.get(key)
  }

  entries(): IterableIterator<IndexEntry> {
    return this.#entries.values()
  }

  /** Number of uids that were ever given; the next incarnation is this many and one. */
  get incarnations(): number {
    return this.#incarnations
  }

  get relists(): number {
    return this.#relists
  }

  /** Was there ever a complete listing, so that the log has what the source had? */
  get isListed(): boolean {
    return this.#isListed
  }

  toState(): IndexState {
    return {
      entries: [...this.#entries.values()],
      incarnations: this.#incarnations,
      relists: this.#relists,
      epoch: this.#gate.epoch,
      isListed: this.#isListed,
    }
  }

  #put(entry: IndexEntry): void {
    const key = keyOf(entry)
    if (this.#entries.get(key)?.uid !== entry.uid) this.#incarnations++
    this.#entries.set(key, entry)
  }
}

/** Count of the objects in force, and a digest of them that does not depend on their order. */
export function summarise(entries: Iterable<IndexEntry>): { count: number; digest: string } {
  let count = 0
  let sum = 0n
  for (const { uid, inForce } of entries) {
    if (inForce === undefined) continue
    count++
    sum += createHash('sha256').update(`${uid}:${inForce}`).digest().readBigUInt64BE()
  }
  return { count, digest: BigInt.asUintN(64, sum).toString(16).padStart(16, '0') }
}
