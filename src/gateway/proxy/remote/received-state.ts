/**
 * The resources that a controller has sent: the latest version of each and, until that is in force,
 * the last good one.
 *
 * ```
 *             received                    in force in every worker
 *   (new) ──────────────► pending ─────────────────────────────────► in force
 *                          │    ▲                                        │
 *                 refused  ▼    └────────────── received ────────────────┤
 *                        refused ◄───────────────────────────────────────┘
 *                          └── the last good version is kept as well
 * ```
 */

import type { ReceivedResource } from '../../../control/wire/discovery.ts'
import { assembleVersioned, type EncodedResource } from '../../../control/wire/encode.ts'
import type { VersionedPiece } from '../../../control/wire/pieces.ts'
import type { ResourceKey } from '../../../ground/model/resources.ts'

/** Size of a block. It is large enough that the system allocates and frees each block separately. */
const blockBytes = 256 * 1024

/** Memory for many small byte strings, which need half as much memory here as in separate allocations. */
class PieceStore {
  #block = new Uint8Array(0)
  #used = 0
  #blocks = 0
  #alive = 0

  /** Copies bytes into the store and returns the copy. */
  keep(bytes: Uint8Array): Uint8Array {
    const kept = this.room(bytes.length)
    kept.set(bytes)
    return kept
  }

  /** Allocates memory that the caller fills. */
  room(length: number): Uint8Array {
    this.#alive += length
    if (length > blockBytes / 4) {
      this.#blocks += length
      return new Uint8Array(length)
    }
    if (this.#used + length > this.#block.length) {
      this.#block = new Uint8Array(blockBytes)
      this.#blocks += blockBytes
      this.#used = 0
    }
    const from = this.#used
    this.#used += length
    return this.#block.subarray(from, this.#used)
  }

  release(piece: Uint8Array): void {
    this.#alive -= piece.length
  }

  /** Whether most of the memory is unused. If so, all strings should be copied to a new store. */
  get isWasteful(): boolean {
    return this.#blocks > 2 * this.#alive + 4 * blockBytes
  }
}

interface StoredVersion {
  readonly version: string
  piece: EncodedResource
}

interface Entry {
  latest: StoredVersion
  state: 'pending' | 'in force' | 'refused'
  /** Sequence of the change set that contained the latest version. */
  sequence: number
  good: StoredVersion | undefined
}

/** The encoded resources to be stored on disk. */
export interface StoredPieces {
  readonly inForce: readonly EncodedResource[]
  /** Latest versions that were refused. The good versions that they should replace are in `inForce`. */
  readonly refused: readonly EncodedResource[]
}

export class ReceivedState {
  readonly #entries = new Map<ResourceKey, Entry>()
  /** Keys of resources whose latest version is not in force. */
  readonly #unsettled = new Set<ResourceKey>()
  #pieces = new PieceStore()

  get size(): number {
    return this.#entries.size
  }

  /** Stores a change set. Returns the encoded resources for the workers. */
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
    if (this.#pieces.isWasteful) this.#compact()
    return pieces
  }

  #release(...all: readonly (StoredVersion | undefined)[]): void {
    for (const held of all) if (held !== undefined) this.#pieces.release(held.piece)
  }

  /** Copies all pieces to a new store. Pieces that were returned earlier stay valid. */
  #compact(): void {
    this.#pieces = new PieceStore()
    for (const { latest, good } of this.#entries.values()) {
      latest.piece = this.#pieces.keep(latest.piece)
      if (good !== undefined) good.piece = this.#pieces.keep(good.piece)
    }
  }

  #put(key: ResourceKey, latest: StoredVersion, sequence: number): void {
    const known = this.#entries.get(key)
    const isInForce = known?.state === 'in force'
    const good = isInForce ? known.latest : known?.good
    if (known !== undefined && !isInForce) this.#release(known.latest)
    this.#entries.set(key, { latest, state: 'pending', sequence, good })
    this.#unsettled.add(key)
  }

  /** Restores the state from disk. */
  restore(inForce: readonly VersionedPiece[], refused: readonly VersionedPiece[]): void {
    const keep = ({ version, piece }: VersionedPiece): StoredVersion => ({
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

  /**
   * Called when all workers have applied the change sets up to `sequence`. Returns true if any state has
   * changed.
   */
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
   * Returns the versions for the first request of a stream. For a resource whose latest version is not in
   * force, the version is empty, so that the controller sends the resource again or removes it.
   */
  versions(): Map<ResourceKey, string> {
    const versions = new Map<ResourceKey, string>()
    for (const [key, { state, latest }] of this.#entries) {
      versions.set(key, state === 'in force' ? latest.version : '')
    }
    return versions
  }

  /** Yields the version of each resource that is in force, or else its last good version. */
  *base(): Iterable<EncodedResource> {
    for (const { state, latest, good } of this.#entries.values()) {
      if (state === 'in force') yield latest.piece
      else if (good !== undefined) yield good.piece
    }
  }

  /** Returns the latest versions that are not in force. */
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
