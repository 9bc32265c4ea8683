/**
 * SHA-256 (`$5$`) and SHA-512 (`$6$`) hashes of crypt(3), after Ulrich Drepper's "Unix crypt using
 * SHA-256 and SHA-512".
 */
import { createHash, hash } from 'node:crypto'
import { roundParts, threeBytes, toCryptDigits } from './crypt-alphabet.ts'

const kinds = {
  '5': { algorithm: 'sha256', size: 32 },
  '6': { algorithm: 'sha512', size: 64 },
} as const

type ShaPrefix = keyof typeof kinds
type Kind = (typeof kinds)[ShaPrefix]

/** Returns the digits at the end of a hash. `salt` has at most 16 characters; `rounds` is at least 1000. */
export function shaCryptDigits(
  password: Uint8Array,
  salt: string,
  prefix: ShaPrefix,
  rounds: number,
): string {
  const kind = kinds[prefix]
  const rawSalt = Buffer.from(salt)
  let digest = firstDigest(kind, password, rawSalt)
  const passwordBytes = stretched(kind, repeat(password, password.length), password.length)
  const saltRepeats = 16 + (digest[0] ?? 0)
  const saltBytes = stretched(kind, repeat(rawSalt, saltRepeats), rawSalt.length)
  for (let round = 0; round < rounds; round++) {
    const parts = roundParts(round, digest, passwordBytes, saltBytes)
    digest = hash(kind.algorithm, Buffer.concat(parts), 'buffer')
  }
  return prefix === '5' ? digits256(digest) : digits512(digest)
}

function firstDigest({ algorithm, size }: Kind, password: Uint8Array, salt: Uint8Array): Buffer {
  const alternate = hash(algorithm, Buffer.concat([password, salt, password]), 'buffer')
  const main = createHash(algorithm).update(password).update(salt)
  for (let left = password.length; left > 0; left -= size) main.update(alternate.subarray(0, left))
  for (let bits = password.length; bits > 0; bits >>>= 1) {
    main.update((bits & 1) === 1 ? alternate : password)
  }
  return main.digest()
}

const repeat = (bytes: Uint8Array, times: number): Buffer =>
  Buffer.concat(Array.from({ length: times }, () => bytes))

/** Repeats the digest of `bytes` up to `length` bytes. */
function stretched({ algorithm, size }: Kind, bytes: Uint8Array, length: number): Buffer {
  const digest = hash(algorithm, bytes, 'buffer')
  return repeat(digest, Math.ceil(length / size)).subarray(0, length)
}

/** Each group of digits encodes one byte of each third of the digest; the order of the thirds rotates. */
function digits256(digest: Buffer): string {
  let text = ''
  let [a, b, c] = [0, 10, 20]
  for (let group = 0; group < 10; group++) {
    text += threeBytes(digest, a, b, c)
    ;[a, b, c] = [c + 1, a + 1, b + 1]
  }
  return text + toCryptDigits(((digest[31] ?? 0) << 8) | (digest[30] ?? 0), 3)
}

function digits512(digest: Buffer): string {
  let text = ''
  let [a, b, c] = [0, 21, 42]
  for (let group = 0; group < 21; group++) {
    text += threeBytes(digest, a, b, c)
    ;[a, b, c] = [b + 1, c + 1, a + 1]
  }
  return text + toCryptDigits(digest[63] ?? 0, 2)
}
