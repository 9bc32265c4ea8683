import {
  EpochGate,
  type Origin,
  type ResourceEvent,
  type ResourceName,
  type SluiceEvent,
} from '../../../events/index.ts'
import { hexDigest } from '../../ground/base/digest.ts'

/** The state of one object in the log, with which a source compares what it observes. */
export interface IndexEntry extends ResourceName {
  readonly uid: string
  /** Resource version of the last observed version, valid or refused. */
  readonly resourceVersion: string
  readonly generation: number
  /** Whether the last observed version was refused. */
  readonly isRefused: boolean
  /** Resource version of the last valid version. Not set if there never was one. */
  readonly inForce?: string
  readonly origin?: Origin
}

/** The index as plain data, for a snapshot. */
export interface ResourceIndexState {
  readonly entries: readonly IndexEntry[]
  readonly incarnations: number
  readonly relists: number
  readonly epoch?: number
  /** Whether a listing was completed. */
  readonly isListed?: boolean
}

/** `Kind/namespace/name`. */
export function keyOf({ kind, namespace, name }: ResourceName): string {
  return [kind, namespace, name].join('/')
}

/**
 * The objects that one source has put into the log, folded from its events. The source compares with them and
 * appends only differences.
 */
export class ResourceIndex {
  readonly source: string
  #entries: Map<string, IndexEntry>
  #incarnations: number
  #relists: number
  #gate: EpochGate
  #isListed: boolean

  /** `source` is the source attribute of the events to apply; other events are ignored. */
  constructor(source: string, state?: ResourceIndexState) {
    this.source = source
    this.#entries = new Map(state?.entries.map((entry) => [keyOf(entry), entry]))
    this.#incarnations = state?.incarnations ?? 0
    this.#relists = state?.relists ?? 0
    this.#gate = new EpochGate(state?.epoch)
    this.#isListed = state?.isListed ?? false
  }

  /** An independent copy. */
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

  /** Number of uids that were ever assigned to objects. */
  get incarnations(): number {
    return this.#incarnations
  }

  get relists(): number {
    return this.#relists
  }

  /** Whether the log ever had a complete listing of the source. */
  get isListed(): boolean {
    return this.#isListed
  }

  toState(): ResourceIndexState {
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

/** Number of objects with a valid version, and a digest of them that does not depend on their order. */
export function summarise(entries: Iterable<IndexEntry>): { count: number; digest: string } {
  let count = 0
  let sum = 0n
  for (const { uid, inForce } of entries) {
    if (inForce === undefined) continue
    count++
    sum += BigInt(`0x${hexDigest('sha256', `${uid}:${inForce}`).slice(0, 16)}`)
  }
  return { count, digest: BigInt.asUintN(64, sum).toString(16).padStart(16, '0') }
}
