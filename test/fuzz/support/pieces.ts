import { Random } from './random.ts'

/** A number that depends on the bytes alone, so that an input is always cut in the same way. */
function digest(bytes: Uint8Array): number {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash
}

/** The bytes in pieces of one size. Every piece is a copy of its own. */
export function inPieces(bytes: Uint8Array, size: number): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) {
    pieces.push(Buffer.from(bytes.subarray(at, at + size)))
  }
  return pieces
}

/** The bytes whole, byte by byte, and cut somewhere (where depends on the bytes alone). */
export function cuts(bytes: Uint8Array): Buffer[][] {
  const random = new Random(digest(bytes))
  const somewhere: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + random.length(64)
    somewhere.push(Buffer.from(bytes.subarray(at, at + size)))
    at += size
  }
  return [[Buffer.from(bytes)], inPieces(bytes, 1), somewhere]
}
