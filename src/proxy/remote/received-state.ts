/**
 * What a controller has sent, resource by resource: the latest version, and beside it the last good
 * one for as long as it is not known that the latest is in force.
 *
 * ```
 *             received                    in force in every worker
 *   (new) ──────────────► pending ─────────────────────────────────► in force
 *                          │    ▲                                        │
 *                 refused  ▼    └────────────── received ────────────────┤
 *                        refused ◄───────────────────────────────────────┘
 *                          └── the last good version stays beside it
 * ```
 */
import type { ResourceKey } from '../../model/resources.ts'
import type { ReceivedResource } from '../../wire/discovery.ts'
import { assembleVersioned, type EncodedResource } from '../../wire/encode.ts'
import type { VersionedPiece } from '../../wire/pieces.ts'
import { PieceStore } from './pieces.ts'

interface Held {
  readonly version: string
  piece: EncodedResource
}

interface Entry {
  latest: Held
  state: 'pending' | 'in force' | 'refused'
  /** The change set that brought the latest version. */
  sequence: number
  good: Held | undefined
}

/** Encoded resources, as they are kept on disk. */
export interface StoredPieces {
  readonly inForce: readonly EncodedResource[]
  /** Latest versions that are not in force; what they replace is in `inForce`. */
  readonly refused: readonly EncodedResource[]
}

export class ReceivedState {
  readonly #entries = new Map<ResourceKey, Entry>()
  /** Keys of entries that are not in force. */
  readonly #unsettled = new Set<ResourceKey>()
  #pieces = new PieceStore()

  get size(): number {
    return this.#entries.size
  }

  /** Takes a change set in; returns the pieces that workers get. */
  receive(
    sequence: number,
    upserted: readonly ReceivedResource[],
    removed: readonly ResourceKey[],
  ): EncodedResource[] {
    for (const key of removed) {
      const entry = this.#entries.get(key)
      if (entry !== undefined) this.#release(entry.latest, entry.good)
      this.#entries.delete(key)
      this.#unsettled.delete(key)
    }
    const pieces = upserted.map(({ key, version, body }) => {
      const piece = assembleVersioned(version, body, (length) => this.#pieces.room(length))
      this.#put(key, { version, piece }, sequence)
      return piece
    })
    if (this.#pieces.isWasteful) this.#gather()
    return pieces
  }

  #release(...all: readonly (Held | undefined)[]): void {
    for (const held of all) if (held !== undefined) this.#pieces.release(held.piece)
  }

  /** Moves everything that is needed close together; pieces that were handed out stay as they are. */
  #gather(): void {
    this.#pieces = new PieceStore()
    for (const { latest, good } of this.#entries.values()) {
      latest.piece = this.#pieces.keep(latest.piece)
      if (good !== undefined) good.piece = this.#pieces.keep(good.piece)
    }
  }

  #put(key: ResourceKey, latest: Held, sequence: number): void {
    const known = this.#entries.get(key)
    const isInForce = known?.state === 'in force'
    const good = isInForce ? known.latest : known?.good
    if (known !== undefined && !isInForce) this.#release(known.latest)
    this.#entries.set(key, { latest, state: 'pending', sequence, good })
    this.#unsettled.add(key)
  }

  /** Takes back what was kept on disk. */
  restore(inForce: readonly VersionedPiece[], refused: readonly VersionedPiece[]): void {
    const keep = ({ version, piece }: VersionedPiece): Held => ({
      version,
      piece: this.#pieces.keep(piece),
    })
    for (const one of inForce) {
      const latest = keep(one)
      this.#entries.set(one.key, { latest, state: 'in force', sequence: 0, good: undefined })
    }
    for (const one of refused) {
      const { key } = one
      this.#put(key, keep(one), 0)
      const entry = this.#entries.get(key)
      if (entry !== undefined) entry.state = 'refused'
    }
  }

  /** Every worker has change sets up to a sequence, except what is refused; has anything changed? */
  settle(sequence: number, isRefused: (key: ResourceKey) => boolean): boolean {
    let hasChanged = false
    for (const key of this.#unsettled) {
      const entry = this.#entries.get(key)
      if (entry === undefined || entry.sequence > sequence) continue
      const state = isRefused(key) ? 'refused' : 'in force'
      hasChanged ||= entry.state !== state
      entry.state = state
      if (state === 'in force') this.#settled(key, entry)
    }
    return hasChanged
  }

  #settled(key: ResourceKey, entry: Entry): void {
    this.#release(entry.good)
    entry.good = undefined
    this.#unsettled.delete(key)
  }

  /**
   * What the proxy has, for the first request of a stream. A version that is not in force goes as an
   * empty text, which no version equals: it is sent again, or taken away.
   */
  versions(): Map<ResourceKey, string> {
    const versions = new Map<ResourceKey, string>()
    for (const [key, { state, latest }] of this.#entries) {
      versions.set(key, state === 'in force' ? latest.version : '')
    }
    return versions
  }

  /** What is in force, or was before what came since. */
  *base(): Iterable<EncodedResource> {
    for (const { state, latest, good } of this.#entries.values()) {
      if (state === 'in force') yield latest.piece
      else if (good !== undefined) yield good.piece
    }
  }

  /** What has come since and is not in force. */
  newer(): EncodedResource[] {
    return [...this.#unsettled].flatMap((key) => this.#entries.get(key)?.latest.piece ?? [])
  }

  toStore(): StoredPieces {
    const refused = [...this.#unsettled].flatMap((key) => {
      const entry = this.#entries.get(key)
      return entry?.state === 'refused' ? [entry.latest.piece] : []
    })
    return { inForce: [...this.base()], refused }
  }
}
