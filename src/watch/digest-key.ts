import { createHmac, randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'

const keyBytes = 32

/**
 * Gives values a digest that can be compared and not guessed: HMAC-SHA256 under a key that never
 * enters the log. Without a key, a short password could be found by trying.
 */
export class DigestKey {
  #key: Uint8Array

  constructor(key: Uint8Array) {
    this.#key = key
  }

  /** 32 hexadecimal digits: half of the HMAC, more than enough to tell values apart. */
  digest(value: Uint8Array | string): string {
    return createHmac('sha256', this.#key).update(value).digest('hex').slice(0, 32)
  }

  /** Tells keys apart, and says nothing else of them. */
  get name(): string {
    return Buffer.from(this.derive('naming the key')).toString('hex').slice(0, 16)
  }

  /** 32 bytes for another purpose, which say nothing of the key or of digests. */
  derive(purpose: string): Uint8Array {
    const derived = createHmac('sha256', this.#key).update(`derived key for ${purpose}`)
    return derived.digest()
  }
}

/** A key for this process only; digests of another run will differ. */
export function randomDigestKey(): DigestKey {
  return new DigestKey(randomBytes(keyBytes))
}

/**
 * The key in a file of mode 0600, made on first use. A file that does not hold a key is replaced:
 * every Secret then counts as changed once, which costs history and no correctness.
 * @throws the system's error where the file can neither be read nor written.
 */
export function openDigestKey(path: string): DigestKey {
  const known = readKeyFile(path)
  if (known !== undefined) return new DigestKey(known)
  const key = randomBytes(keyBytes)
  writeFileSync(path, key, { mode: 0o600 })
  chmodSync(path, 0o600)
  return new DigestKey(key)
}

/** The key in such a file; undefined where there is none. @throws the system's error */
export function readKeyFile(path: string): Uint8Array | undefined {
  try {
    const key = readFileSync(path)
    restrict(path)
    return key.length === keyBytes ? key : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** A mounted Secret cannot be changed, and need not be. */
function restrict(path: string): void {
  try {
    chmodSync(path, 0o600)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EROFS' && code !== 'EPERM') throw error
  }
}
