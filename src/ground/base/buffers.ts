/** A whole body: a text, bytes, or bytes in parts, which need not be joined. */
export type WholeBody = string | Uint8Array | readonly Uint8Array[]

/** Whether the body is in parts. */
export const isInParts = (body: WholeBody | undefined): body is readonly Uint8Array[] =>
  Array.isArray(body)

/** Returns the bytes of a body as one buffer. */
export function bytesOf(body: WholeBody): Buffer {
  if (typeof body === 'string') return Buffer.from(body)
  return isInParts(body) ? Buffer.concat(body) : bufferOf(body)
}

/** Returns the same bytes as a buffer. */
export function bufferOf(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Copies bytes [start, end), without making a view of them. */
export function copyOf(bytes: Uint8Array, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafe(end - start)
  Buffer.prototype.copy.call(bytes, copy, 0, start, end)
  return copy
}
