/** The polynomial of Castagnoli, with its bits reversed. `crc32` of Node uses a different polynomial. */
const polynomial = 0x82f63b78

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = (rest & 1) === 0 ? rest >>> 1 : (rest >>> 1) ^ polynomial
  return rest
})

/** Returns the CRC32C (RFC 3720 B.4) of bytes. */
export function crc32c(bytes: Uint8Array): number {
  let sum = 0xffffffff
  for (const byte of bytes) sum = (table[(sum ^ byte) & 255] ?? 0) ^ (sum >>> 8)
  return (sum ^ 0xffffffff) >>> 0
}
