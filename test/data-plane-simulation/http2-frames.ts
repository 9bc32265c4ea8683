/** Frames and literal fields of HTTP/2 (RFC 9113, RFC 7541), as far as the simulated peers need them. */
import { type Field, FramingError } from './http1-reader.ts'

export const types = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const
export const endStream = 0x1
export const endHeaders = 0x4
const padded = 0x8
export const acknowledged = 0x1

/** Writes a frame. */
export function frameOf(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Writes numbers of 32 bits. */
export function uint32s(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, 4 * at)
  return bytes
}

export function fail(text: string): never {
  throw new FramingError(text)
}

export function withoutPadding(flags: number, payload: Buffer): Buffer {
  if ((flags & padded) === 0) return payload
  const size = payload[0] ?? 0
  if (size >= payload.length) fail('more padding than payload')
  return payload.subarray(1, payload.length - size)
}

/** Writes a field as a literal that enters no table. */
export function literal([name, value]: Field): Buffer {
  const text = (one: string) => {
    const bytes = Buffer.from(one, 'latin1')
    return Buffer.concat([lengthOf(bytes.length), bytes])
  }
  return Buffer.concat([Buffer.from([0]), text(name), text(value)])
}

function lengthOf(length: number): Buffer {
  if (length < 127) return Buffer.from([length])
  const out = [127]
  let left = length - 127
  for (; left >= 128; left = Math.floor(left / 128)) out.push(0x80 | (left & 0x7f))
  out.push(left)
  return Buffer.from(out)
}
