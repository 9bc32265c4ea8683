import { GrowingBytes } from '../../base/growing-bytes.ts'
import type { BufferedBody } from '../../exchange/exchange.ts'

/** Who waits for a body in memory. */
export interface BodyWaiter {
  readonly limit: number
  resolve(body: BufferedBody): void
  reject(error: Error): void
}

/** A copy of what passes of a body, up to a limit, for a look when it is over. */
export class BodyCopy {
  readonly #limit: number
  readonly #bytes = new GrowingBytes()
  #missed = false

  constructor(limit: number) {
    this.#limit = limit
  }

  add(bytes: Buffer, start: number, end: number): void {
    const upTo = Math.min(end, start + this.#limit - this.#bytes.length)
    if (upTo < end) this.#missed = true
    if (upTo > start) this.#bytes.add(bytes, start, upTo)
  }

  /** `isWhole`: the body has come to its end. */
  content(isWhole: boolean): BufferedBody {
    const all = this.#bytes.content
    return isWhole && !this.#missed
      ? { complete: true, bytes: all }
      : { complete: false, prefix: all }
  }
}

/** Bytes of a buffer that will be overwritten. */
export function copyOf(bytes: Buffer, start: number, end: number): Buffer {
  return Buffer.from(bytes.subarray(start, end))
}

/** A body that was read, whole or up to a limit that it exceeds. */
export function boundedBody(all: Buffer, limit: number | undefined): BufferedBody {
  return limit === undefined
    ? { complete: true, bytes: all }
    : { complete: false, prefix: all.subarray(0, limit) }
}
