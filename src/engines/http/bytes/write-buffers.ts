import { latin1Text, writeLatin1 } from '../../../ground/base/latin1.ts'
import type { IoCore } from '../../core/index.ts'
import { copyLimit } from './write-limits.ts'

/** Maximum number of buffers. A connection needs one from a head to the next flush, usually one read. */
const maxBuffers = 64
/** Number of views that each buffer caches by their length, since messages have few different lengths. */
const viewCount = 64
/** Maximum number of buffers that are kept for requests that may have to be resent. */
const maxKept = 32
/** Bytes of the core's memory that write buffers leave to everything else. */
const reservedBytes = 1024 * 1024

/**
 * Collects a head and what follows it, to be written at once. It lies in the core's memory like read
 * buffers, so that bytes that are forwarded unchanged are copied there without becoming text.
 */
export class WriteBuffer {
  readonly #owner: WriteBuffers
  readonly #core: IoCore
  readonly #start: number
  readonly #views: (Uint8Array | undefined)[] = new Array(viewCount).fill(undefined)
  length = 0
  #isKept = false
  #isReleased = false

  constructor(owner: WriteBuffers, core: IoCore) {
    this.#owner = owner
    this.#core = core
    this.#start = core.allocate(copyLimit)
  }

  /** Returns false if there is no room. */
  addText(latin1: string): boolean {
    if (this.length + latin1.length > copyLimit) return false
    writeLatin1(this.#core.bytes, latin1, this.#start + this.length)
    this.length += latin1.length
    return true
  }

  /** Returns false if there is no room. */
  addBytes(bytes: Buffer, start: number, end: number): boolean {
    const size = end - start
    if (this.length + size > copyLimit) return false
    const core = this.#core
    const to = this.#start + this.length
    if (bytes === core.bytes) core.exports.copy(to, start, size)
    else bytes.copy(core.bytes, to, start, end)
    this.length += size
    return true
  }

  /** Returns a view of the content; views are cached by their length. */
  view(): Uint8Array {
    const { length } = this
    const slot = length % viewCount
    const kept = this.#views[slot]
    if (kept?.length === length) return kept
    const view = new Uint8Array(this.#core.bytes.buffer, this.#start, length)
    this.#views[slot] = view
    return view
  }

  text(): string {
    return latin1Text(this.#core.bytes, this.#start, this.#start + this.length)
  }

  /** Returns a copy of bytes [from, to) of the content. */
  copy(from: number, to: number): Buffer {
    return Buffer.from(this.#core.bytes.subarray(this.#start + from, this.#start + to))
  }

  /** Called when the content has been sent, so that the buffer may be used again. */
  release(): void {
    if (this.#isKept) this.#isReleased = true
    else this.#owner.giveBack(this)
  }

  /** Keeps the content, with `size` bytes about to be added, until `unkeep`. Returns false if it cannot. */
  keep(size: number): boolean {
    if (this.#isKept || this.length + size > copyLimit) return false
    this.#isKept = this.#owner.mayKeep()
    return this.#isKept
  }

  unkeep(): void {
    this.#isKept = false
    this.#owner.kept--
    if (!this.#isReleased) return
    this.#isReleased = false
    this.#owner.giveBack(this)
  }
}

/** The write buffers of an engine, made on demand while the core has memory to spare. */
export class WriteBuffers {
  readonly #core: IoCore
  readonly #spare: WriteBuffer[] = []
  #count = 0
  kept = 0

  constructor(core: IoCore) {
    this.#core = core
  }

  /** Returns undefined if none is left; callers then write text instead. */
  lease(): WriteBuffer | undefined {
    const spare = this.#spare.pop()
    if (spare !== undefined || this.#count >= maxBuffers) return spare
    if (this.#core.untouchedBytes < reservedBytes + copyLimit) return undefined
    this.#count++
    return new WriteBuffer(this, this.#core)
  }

  /** Counts one more kept buffer. Returns false if too many are kept. */
  mayKeep(): boolean {
    if (this.kept >= maxKept) return false
    this.kept++
    return true
  }

  giveBack(buffer: WriteBuffer): void {
    buffer.length = 0
    this.#spare.push(buffer)
  }
}
