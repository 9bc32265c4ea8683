/** Messages of gRPC on HTTP/2: length-prefixed, with a status behind them (gRPC over HTTP/2). */

import { GrowingBytes } from '../../base/growing-bytes.ts'

const prefixLength = 5
/** Larger messages are refused. */
const messageLimit = 16 * 1024 * 1024

/** A message with its prefix, uncompressed. */
export function frameMessage(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(prefixLength + message.length)
  framed[0] = 0
  framed.writeUInt32BE(message.length, 1)
  framed.set(message, prefixLength)
  return framed
}

/** Cuts a stream of bytes into messages. */
export class MessageReader {
  /** The beginning of a message whose end has not arrived. */
  #held = new GrowingBytes()

  get isInside(): boolean {
    return this.#held.length > 0
  }

  /** The messages that are complete now; a text says what is wrong with the stream. */
  read(bytes: Buffer): readonly Uint8Array[] | string {
    const found: Uint8Array[] = []
    let at = 0
    while (at < bytes.length) {
      at = this.#take(bytes, at, prefixLength)
      if (this.#held.length < prefixLength) break
      const prefix = this.#held.content
      const length = prefix.readUInt32BE(1)
      if (prefix[0] !== 0) return 'a message is compressed, which was not offered'
      if (length > messageLimit) return `a message has more than ${messageLimit} bytes`
      at = this.#take(bytes, at, prefixLength + length)
      if (this.#held.length < prefixLength + length) break
      found.push(this.#held.content.subarray(prefixLength))
      // The message keeps its memory.
      this.#held = new GrowingBytes()
    }
    return found
  }

  /** Adds bytes until so many are held; gives where the others begin. */
  #take(bytes: Buffer, at: number, wanted: number): number {
    const end = Math.min(bytes.length, at + Math.max(0, wanted - this.#held.length))
    this.#held.add(bytes, at, end)
    return end
  }
}

/** `grpc-status` and `grpc-message`; undefined where there is no status. */
export function readStatus(
  get: (name: string) => string | undefined,
): { readonly code: number; readonly message: string } | undefined {
  const code = get('grpc-status')
  if (code === undefined || !/^\d{1,4}$/.test(code)) return undefined
  const message = get('grpc-message') ?? ''
  return { code: Number(code), message: decoded(message) }
}

function decoded(message: string): string {
  try {
    return decodeURIComponent(message)
  } catch {
    return message
  }
}

/** Field lines as HTTP/1.1 has them. */
export function fieldOf(lines: string, wanted: string): string | undefined {
  for (const line of lines.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon > 0 && line.slice(0, colon).toLowerCase() === wanted) {
      return line.slice(colon + 1).trim()
    }
  }
  return undefined
}
