/**
 * MD5 hashes of htpasswd (`$apr1$`) and of crypt(3) (`$1$`), which differ only in the prefix. The
 * algorithm is Poul-Henning Kamp's: a thousand rounds over password, salt and the digest so far.
 */
import { hash } from 'node:crypto'
import { roundParts, threeBytes, toCryptDigits } from './crypt-alphabet.ts'

const md5 = (...parts: readonly Uint8Array[]): Buffer => hash('md5', Buffer.concat(parts), 'buffer')

/** Returns the whole text of a hash. `prefix` is `apr1` or `1`; `salt` has at most 8 characters. */
export function md5Crypt(password: Uint8Array, salt: string, prefix: 'apr1' | '1'): string {
  const saltBytes = Buffer.from(salt)
  const alternate = md5(password, saltBytes, password)
  const parts: Uint8Array[] = [password, Buffer.from(`$${prefix}$`), saltBytes]
  for (let left = password.length; left > 0; left -= 16) parts.push(alternate.subarray(0, left))
  const first = password.subarray(0, 1)
  // For each bit of the length, the original adds a zero byte if the bit is set, else the first byte.
  for (let bits = password.length; bits > 0; bits >>>= 1) {
    parts.push((bits & 1) === 1 ? Buffer.alloc(1) : first)
  }
  let digest = md5(...parts)
  for (let round = 0; round < 1000; round++) {
    digest = md5(...roundParts(round, digest, password, saltBytes))
  }
  return `$${prefix}$${salt}$${text(digest)}`
}

/** Positions of the three bytes that make each group of four digits; byte 11 makes the last two digits. */
const groups = [
  [0, 6, 12],
  [1, 7, 13],
  [2, 8, 14],
  [3, 9, 15],
  [4, 10, 5],
] as const

function text(digest: Buffer): string {
  const digits = groups.map(([a, b, c]) => threeBytes(digest, a, b, c))
  return `${digits.join('')}${toCryptDigits(digest[11] ?? 0, 2)}`
}
