/** Shared by the crypt(3) formats: base-64 digits, least significant first, and the input of each round. */
export const cryptDigits = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Writes a number of at most 24 bits as `length` digits. */
export function toCryptDigits(value: number, length: number): string {
  let text = ''
  for (let left = value, at = 0; at < length; at++, left >>>= 6) text += cryptDigits[left & 63]
  return text
}

/** Encodes the bytes of a digest at the positions `a`, `b` and `c` as four digits. */
export function threeBytes(digest: Buffer, a: number, b: number, c: number): string {
  const at = (index: number) => digest[index] ?? 0
  return toCryptDigits((at(a) << 16) | (at(b) << 8) | at(c), 4)
}

/** Returns the parts that one round of a crypt(3) format hashes, in order. */
export function roundParts(
  round: number,
  digest: Uint8Array,
  password: Uint8Array,
  salt: Uint8Array,
): Uint8Array[] {
  const isOdd = (round & 1) === 1
  const parts = [isOdd ? password : digest]
  if (round % 3 !== 0) parts.push(salt)
  if (round % 7 !== 0) parts.push(password)
  parts.push(isOdd ? digest : password)
  return parts
}
