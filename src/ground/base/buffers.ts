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
