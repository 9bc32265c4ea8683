import { createHmac, randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'

const keyBytes = 32

/**
 * Computes digests of secret values: HMAC-SHA256 under a key that never enters the log. Without a key,
 * a short password could be guessed from its digest.
 */
export class DigestKey {
  #key: Uint8Array

  constructor(key: Uint8Array) {
    this.#key = key
  }

  /** 32 hexadecimal digits: half of the HMAC, enough to distinguish values. */
  digest(value: Uint8Array | string): string {
    return createHmac('sha256', this.#key).update(value).digest('hex').slice(0, 32)
  }

  /** An identifier of the key that does not reveal it. */
  get name(): string {
    return Buffer.from(this.derive('naming the key')).toString('hex').slice(0, 16)
  }

  /** Derives a 32-byte key for another purpose, which reveals neither this key nor any digest. */
  derive(purpose: string): Uint8Array {
    return createHmac('sha256', this.#key).update(`derived key for ${purpose}`).digest()
  }
}

/** Creates a key for this process only; digests of another run will differ. */
export function randomDigestKey(): DigestKey {
  return new DigestKey(randomBytes(keyBytes))
}

/**
 * Reads the key from a file of mode 0600, or creates the file. A file without a valid key is replaced; every
 * Secret then counts as changed once.
 * @throws the system's error if the file can neither be read nor written
 */
export function openDigestKey(path: string): DigestKey {
  const known = readKeyFile(path)
  if (known !== undefined) return new DigestKey(known)
  const key = randomBytes(keyBytes)
  writeFileSync(path, key, { mode: 0o600 })
  chmodSync(path, 0o600)
  return new DigestKey(key)
}

/** Returns undefined if the file does not exist or has no valid key. @throws the system's error */
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

/** Sets mode 0600, unless the file is in a mounted Secret, whose mode cannot be changed. */
function restrict(path: string): void {
  try {
    chmodSync(path, 0o600)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EROFS' && code !== 'EPERM') throw error
  }
}
