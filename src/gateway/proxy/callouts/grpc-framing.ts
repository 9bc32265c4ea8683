/** gRPC over HTTP/2: length-prefixed messages, then a status in the trailers. */
import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'

const prefixLength = 5
/** Maximum size of a received message. */
const messageLimit = 16 * 1024 * 1024

/** Adds the prefix of an uncompressed message. */
export function frameMessage(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(prefixLength + message.length)
  framed[0] = 0
  framed.writeUInt32BE(message.length, 1)
  framed.set(message, prefixLength)
  return framed
}

/** Splits a stream of bytes into messages. */
export class MessageReader {
  /** The bytes of an incomplete message, including its prefix. */
  #held = new GrowingBytes()

  get isInside(): boolean {
    return this.#held.length > 0
  }

  /** Returns the messages that are now complete. If the stream is malformed, returns the reason as text. */
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
      // The returned message uses the old buffer.
      this.#held = new GrowingBytes()
    }
    return found
  }

  /** Appends bytes until `wanted` bytes are buffered. Returns the position of the next byte. */
  #take(bytes: Buffer, at: number, wanted: number): number {
    const end = Math.min(bytes.length, at + Math.max(0, wanted - this.#held.length))
    this.#held.add(bytes, at, end)
    return end
  }
}

/** Reads `grpc-status` and `grpc-message`. Returns undefined if there is no valid status. */
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

/** Returns the value of a field in the lines of an HTTP/1.1 head. */
export function fieldOf(lines: string, wanted: string): string | undefined {
  for (const line of lines.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon > 0 && line.slice(0, colon).toLowerCase() === wanted) {
      return line.slice(colon + 1).trim()
    }
  }
  return undefined
}
