/**
 * SHA-256 (`$5$`) and SHA-512 (`$6$`) hashes of crypt(3), after Ulrich Drepper's "Unix crypt using
 * SHA-256 and SHA-512".
 */
import { createHash, hash } from 'node:crypto'
import { toCryptDigits } from './crypt-alphabet.ts'

type ShaMark = '5' | '6'

interface Kind {
  readonly algorithm: 'sha256' | 'sha512'
  readonly size: number
}

const kinds: Readonly<Record<ShaMark, Kind>> = {
  '5': { algorithm: 'sha256', size: 32 },
  '6': { algorithm: 'sha512', size: 64 },
}

/** The digits at the end of a hash. `salt` at most 16 characters, `rounds` 1000 or more. */
export function shaCryptDigits(
  password: Uint8Array,
  salt: string,
  mark: ShaMark,
  rounds: number,
): string {
  const kind = kinds[mark]
  const pepper = Buffer.from(salt)
  let digest = firstDigest(kind, password, pepper)
  const passwordBytes = stretched(kind, repeat(password, password.length), password.length)
  const saltRepeats = 16 + (digest[0] ?? 0)
  const saltBytes = stretched(kind, repeat(pepper, saltRepeats), pepper.length)
  for (let round = 0; round < rounds; round++) {
    const isOdd = (round & 1) === 1
    const part = createHash(kind.algorithm).update(isOdd ? passwordBytes : digest)
    if (round % 3 !== 0) part.update(saltBytes)
    if (round % 7 !== 0) part.update(passwordBytes)
    digest = part.update(isOdd ? digest : passwordBytes).digest()
  }
  return mark === '5' ? digits256(digest) : digits512(digest)
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

/** The digest of `bytes`, repeated to `length`. */
function stretched({ algorithm, size }: Kind, bytes: Uint8Array, length: number): Buffer {
  const digest = hash(algorithm, bytes, 'buffer')
  return repeat(digest, Math.ceil(length / size)).subarray(0, length)
}

const three = (digest: Buffer, a: number, b: number, c: number): string => {
  const at = (index: number) => digest[index] ?? 0
  return toCryptDigits((at(a) << 16) | (at(b) << 8) | at(c), 4)
}

/** Each group takes one byte from each third of the digest; the thirds take turns to lead. */
function digits256(digest: Buffer): string {
  let text = ''
  let [a, b, c] = [0, 10, 20]
  for (let group = 0; group < 10; group++) {
    text += three(digest, a, b, c)
    ;[a, b, c] = [c + 1, a + 1, b + 1]
  }
  return text + toCryptDigits(((digest[31] ?? 0) << 8) | (digest[30] ?? 0), 3)
}

function digits512(digest: Buffer): string {
  let text = ''
  let [a, b, c] = [0, 21, 42]
  for (let group = 0; group < 21; group++) {
    text += three(digest, a, b, c)
    ;[a, b, c] = [b + 1, c + 1, a + 1]
  }
  return text + toCryptDigits(digest[63] ?? 0, 2)
}
