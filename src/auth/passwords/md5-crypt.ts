/**
 * MD5 hashes of htpasswd (`$apr1$`) and of crypt(3) (`$1$`); they differ in the mark only. The
 * algorithm is Poul-Henning Kamp's: a thousand rounds over password, salt and the digest so far.
 */
import { hash } from 'node:crypto'
import { toCryptDigits } from './crypt-alphabet.ts'

const md5 = (...parts: readonly Uint8Array[]): Buffer => hash('md5', Buffer.concat(parts), 'buffer')

/** The whole text of a hash. `mark` is `apr1` or `1`, `salt` at most 8 characters. */
export function md5Crypt(password: Uint8Array, salt: string, mark: 'apr1' | '1'): string {
  const pepper = Buffer.from(salt)
  const alternate = md5(password, pepper, password)
  const parts: Uint8Array[] = [password, Buffer.from(`$${mark}$`), pepper]
  for (let left = password.length; left > 0; left -= 16) parts.push(alternate.subarray(0, left))
  const first = password.subarray(0, 1)
  // As the original has it: a zero for each set bit, the first byte for each clear one.
  for (let bits = password.length; bits > 0; bits >>>= 1) {
    parts.push((bits & 1) === 1 ? Buffer.alloc(1) : first)
  }
  let digest = md5(...parts)
  for (let round = 0; round < 1000; round++) {
    digest = md5(...roundParts(round, digest, password, pepper))
  }
  return `$${mark}$${salt}$${text(digest)}`
}

function roundParts(
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

/** Which three bytes make four digits; the last byte stands alone. */
const groups = [
  [0, 6, 12],
  [1, 7, 13],
  [2, 8, 14],
  [3, 9, 15],
  [4, 10, 5],
] as const

function text(digest: Buffer): string {
  const at = (index: number) => digest[index] ?? 0
  const digits = groups.map(([a, b, c]) => toCryptDigits((at(a) << 16) | (at(b) << 8) | at(c), 4))
  return `${digits.join('')}${toCryptDigits(at(11), 2)}`
}
