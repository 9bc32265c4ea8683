import type { IoCore } from '../../core/index.ts'
import { latin1Text, writeLatin1 } from './latin1.ts'
import { copyLimit } from './write-limits.ts'

/** Most buffers: each serves one connection from a head to the flush behind it, nearly always within one read. */
const mostBuffers = 64
/** Views that each buffer keeps, by their length: messages come in few lengths. */
const viewCount = 64
/** Most buffers that are kept for what may have to be sent again. */
const mostKept = 32
/** Part of the core's memory that stays for everything else. */
const reservedBytes = 1024 * 1024

/**
 * Where a head and what follows it are put side by side, to be written at once. It lies in the
 * core's memory, as what is read does: what is sent on as it came is copied within that memory, and
 * no text is made of it.
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

  /** False if there is no room. */
  addText(latin1: string): boolean {
    if (this.length + latin1.length > copyLimit) return false
    writeLatin1(this.#core.bytes, latin1, this.#start + this.length)
    this.length += latin1.length
    return true
  }

  /** False if there is no room. */
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

  /** What was added; views are reused by length. */
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

  /** Bytes [from, to) of what was added, as their own. */
  copy(from: number, to: number): Buffer {
    return Buffer.from(this.#core.bytes.subarray(this.#start + from, this.#start + to))
  }

  /** What was written has left. */
  release(): void {
    if (this.#isKept) this.#isReleased = true
    else this.#owner.giveBack(this)
  }

  /** Its bytes, and so many more that are about to be added, stay until `unkeep`; false if they do not. */
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

/** The gather buffers of an engine: made when they are needed, as long as the core has memory to spare. */
export class WriteBuffers {
  readonly #core: IoCore
  readonly #spare: WriteBuffer[] = []
  #count = 0
  kept = 0

  constructor(core: IoCore) {
    this.#core = core
  }

  /** `undefined` if there is none; then text is written instead. */
  lease(): WriteBuffer | undefined {
    const spare = this.#spare.pop()
    if (spare !== undefined || this.#count >= mostBuffers) return spare
    if (this.#core.untouchedBytes < reservedBytes + copyLimit) return undefined
    this.#count++
    return new WriteBuffer(this, this.#core)
  }

  /** Counts one more that is kept, unless there are too many. */
  mayKeep(): boolean {
    if (this.kept >= mostKept) return false
    this.kept++
    return true
  }

  giveBack(buffer: WriteBuffer): void {
    buffer.length = 0
    this.#spare.push(buffer)
  }
}
