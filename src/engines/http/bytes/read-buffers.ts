import type { Socket } from 'node:net'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { IoCore } from '../../core/index.ts'

/**
 * Read buffers of upstream connections. A connection keeps its buffer as long as it lives, because a
 * large write to a slow client references the bytes until it has drained. Buffers lie in the core's
 * memory, so that heads and chunks are parsed where they arrive. When that memory is used up, a
 * limited number of buffers is allocated outside of it, whose heads and chunks must be copied. Beyond
 * the limit, requests are refused.
 */

/**
 * Maximum size of one read: the 64 KiB that many servers write at once, and room for a head before
 * them or the framing of a chunk around them, which would otherwise cost one more read and write.
 */
export const readBufferSize = 68 * 1024
/** Bytes of the core's memory that read buffers leave to everything else. */
const reservedBytes = 1024 * 1024
/** Maximum number of unused buffers outside the core that are kept. */
const spareLimit = 64
/** Default maximum number of buffers outside the core (544 MiB). */
const outsideLimit = 8_192

export interface ReadBuffer {
  /** The memory that the buffer is a part of. */
  readonly memory: Buffer
  readonly start: number
}

/** Where a socket puts arriving bytes (Node's `onread`); the buffer is reused for every read. */
export interface ReadInto {
  readonly buffer: Uint8Array
  /** Called after each read; returns false to pause the socket. */
  readonly callback: (length: number) => boolean
}

export class ReadBuffers {
  readonly #core: IoCore
  readonly #maxOutside: number
  /** Number of buffers outside the core, including spare ones. */
  #outside = 0
  /** Number of leased buffers. */
  inUse = 0
  readonly #spare: ReadBuffer[] = []
  readonly #spareOutside: ReadBuffer[] = []

  constructor(core: IoCore, maxOutside = outsideLimit) {
    this.#core = core
    this.#maxOutside = maxOutside
  }

  /** Leases a buffer. Throws `overloaded` if none is left. */
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
    if (this.#outside >= this.#maxOutside) {
      throw new GatewayError('overloaded', 'no read buffer is left')
    }
    this.#outside++
    return { memory: Buffer.allocUnsafeSlow(readBufferSize), start: 0 }
  }

  /** Whether more than three quarters of the buffers that are allowed outside the core are leased. */
  get isScarce(): boolean {
    return (this.#outside - this.#spareOutside.length) * 4 > this.#maxOutside * 3
  }

  /** Gives a buffer back. If `socket` may still reference the buffer, waits until the socket has closed. */
  giveBackAfterClose(buffer: ReadBuffer, socket: Socket | undefined): void {
    if (socket === undefined || socket.closed) this.giveBack(buffer)
    else socket.once('close', () => this.giveBack(buffer))
  }

  giveBack(buffer: ReadBuffer): void {
    this.inUse--
    if (buffer.memory === this.#core.bytes) this.#spare.push(buffer)
    else if (this.#spareOutside.length < spareLimit) this.#spareOutside.push(buffer)
    else this.#outside--
  }
}
