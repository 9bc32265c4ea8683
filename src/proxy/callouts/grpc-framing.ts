/** Messages of gRPC on HTTP/2: length-prefixed, with a status behind them (gRPC over HTTP/2). */

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
  #held: Buffer[] = []
  #heldBytes = 0

  /** Is a message incomplete? */
  get isInside(): boolean {
    return this.#heldBytes > 0
  }

  /** The messages that are complete now; a text says what is wrong with the stream. */
  read(bytes: Buffer): readonly Uint8Array[] | string {
    this.#held.push(bytes)
    this.#heldBytes += bytes.length
    // Most pieces are whole messages, or the middle of a large one.
    const first = this.#held[0]
    if (first !== undefined && first.length >= prefixLength) {
      const needed = prefixLength + first.readUInt32BE(1)
      if (needed <= prefixLength + messageLimit && this.#heldBytes < needed) return []
    }
    const all = this.#held.length === 1 ? bytes : Buffer.concat(this.#held)
    const found: Uint8Array[] = []
    let at = 0
    while (all.length - at >= prefixLength) {
      const length = all.readUInt32BE(at + 1)
      if (all[at] !== 0) return 'a message is compressed, which was not offered'
      if (length > messageLimit) return `a message has more than ${messageLimit} bytes`
      if (all.length - at - prefixLength < length) break
      at += prefixLength
      found.push(all.subarray(at, at + length))
      at += length
    }
    this.#held = at === all.length ? [] : [all.subarray(at)]
    this.#heldBytes = all.length - at
    return found
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
