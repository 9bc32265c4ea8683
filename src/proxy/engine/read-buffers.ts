import type { IoCore } from '../../core/index.ts'

/**
 * Read buffers of upstream connections: one each while it lives, because a large write to a slow
 * client shows the kernel these very bytes until it has drained. They lie in the core's memory, so
 * that heads and chunks are read where they arrive; when its budget is spent, outside of it, at the
 * price of a copy.
 */

/** Bytes that one read can bring. */
export const readBufferSize = 64 * 1024
/** Part of the core's memory that stays for everything else. */
const reservedBytes = 1024 * 1024
/** Most unused buffers outside the core that are kept. */
const spareLimit = 64

export interface ReadBuffer {
  /** The memory that the buffer is a part of. */
  readonly memory: Buffer
  readonly start: number
}

export class ReadBuffers {
  readonly #core: IoCore
  readonly #spare: ReadBuffer[] = []
  readonly #spareOutside: ReadBuffer[] = []

  constructor(core: IoCore) {
    this.#core = core
  }

  lease(): ReadBuffer {
    const spare = this.#spare.pop()
    if (spare !== undefined) return spare
    if (this.#core.untouchedBytes > reservedBytes + readBufferSize) {
      return { memory: this.#core.bytes, start: this.#core.allocate(readBufferSize) }
    }
    return this.#spareOutside.pop() ?? { memory: Buffer.allocUnsafeSlow(readBufferSize), start: 0 }
  }

  giveBack(buffer: ReadBuffer): void {
    if (buffer.memory === this.#core.bytes) this.#spare.push(buffer)
    else if (this.#spareOutside.length < spareLimit) this.#spareOutside.push(buffer)
  }
}
