import type { IoCore } from '../../core/index.ts'
import { GatewayError } from '../../errors/index.ts'

/**
 * Read buffers of upstream connections: one each while it lives, because a large write to a slow
 * client shows the kernel these very bytes until it has drained. They lie in the core's memory, so
 * that heads and chunks are read where they arrive; when its budget is spent, outside of it, at the
 * price of a copy, up to a bound: beyond it a request is refused rather than memory spent.
 */

/**
 * Bytes that one read can bring: 64 KiB, which many servers write at once, and a head before them or
 * the framing of a chunk around them. Where these do not fit, each costs one more read and write.
 */
export const readBufferSize = 68 * 1024
/** Part of the core's memory that stays for everything else. */
const reservedBytes = 1024 * 1024
/** Most unused buffers outside the core that are kept. */
const spareLimit = 64
/** Most buffers outside the core: 512 MiB. */
const outsideLimit = 8_192

export interface ReadBuffer {
  /** The memory that the buffer is a part of. */
  readonly memory: Buffer
  readonly start: number
}

/** Where bytes go that arrive at a socket; the buffer is reused for every read. */
export interface ReadInto {
  readonly buffer: Uint8Array
  /** False pauses the socket. */
  readonly callback: (length: number) => boolean
}

export class ReadBuffers {
  readonly #core: IoCore
  readonly #mostOutside: number
  /** Those that exist, spare ones included. */
  #outside = 0
  /** Those that are leased. */
  inUse = 0
  readonly #spare: ReadBuffer[] = []
  readonly #spareOutside: ReadBuffer[] = []

  constructor(core: IoCore, mostOutside = outsideLimit) {
    this.#core = core
    this.#mostOutside = mostOutside
  }

  /** Throws `overloaded` if there is none left. */
  lease(): ReadBuffer {
    const buffer = this.#find()
    this.inUse++
    return buffer
  }

  #find(): ReadBuffer {
    const spare = this.#spare.pop()
    if (spare !== undefined) return spare
    if (this.#core.untouchedBytes > reservedBytes + readBufferSize) {
      return { memory: this.#core.bytes, start: this.#core.allocate(readBufferSize) }
    }
    const spareOutside = this.#spareOutside.pop()
    if (spareOutside !== undefined) return spareOutside
    if (this.#outside >= this.#mostOutside) {
      throw new GatewayError('overloaded', 'no read buffer is left')
    }
    this.#outside++
    return { memory: Buffer.allocUnsafeSlow(readBufferSize), start: 0 }
  }

  /** Three quarters of what may ever be leased outside the core's memory is. */
  get isScarce(): boolean {
    return (this.#outside - this.#spareOutside.length) * 4 > this.#mostOutside * 3
  }

  giveBack(buffer: ReadBuffer): void {
    this.inUse--
    if (buffer.memory === this.#core.bytes) this.#spare.push(buffer)
    else if (this.#spareOutside.length < spareLimit) this.#spareOutside.push(buffer)
    else this.#outside--
  }
}
