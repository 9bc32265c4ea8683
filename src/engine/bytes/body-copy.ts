import { GrowingBytes } from '../../base/growing-bytes.ts'
import type { BufferedBody } from '../../exchange/exchange.ts'

export const emptyBody: BufferedBody = { complete: true, bytes: new Uint8Array() }

/** A pending read of a body into memory. */
export interface BodyWaiter {
  readonly limit: number
  resolve(body: BufferedBody): void
  reject(error: Error): void
}

/** A copy of a body, up to a limit, made while the body passes and read when it has ended. */
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

  /** Returns the copy. `isWhole`: the body has ended. */
  content(isWhole: boolean): BufferedBody {
    const all = this.#bytes.content
    return isWhole && !this.#missed
      ? { complete: true, bytes: all }
      : { complete: false, prefix: all }
  }
}

/** Copies bytes [start, end) of a buffer that will be overwritten. */
export function copyOf(bytes: Buffer, start: number, end: number): Buffer {
  return Buffer.from(bytes.subarray(start, end))
}

/** Returns a body that was read: complete, or its first `limit` bytes if it exceeds the limit. */
/** Returns the same bytes as a buffer. */
export function bufferOf(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

export function boundedBody(all: Buffer, limit: number | undefined): BufferedBody {
  return limit === undefined
    ? { complete: true, bytes: all }
    : { complete: false, prefix: all.subarray(0, limit) }
}

/** Returns a copy of a body that was read into memory, to send it again. */
export function copyOfRead(known: BufferedBody | undefined): Buffer[] {
  return known?.complete === true ? [Buffer.from(known.bytes)] : []
}
