import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const authTagLength = 16

/** Encrypts and authenticates texts that clients store. Only holders of the secret can make or read them. */
export class Seal {
  readonly #key: Buffer
  readonly #nonceKey: Buffer

  /** Each `purpose` derives different keys from the same secret. */
  constructor(purpose: string, secret: Uint8Array) {
    this.#key = Buffer.from(hkdfSync('sha256', secret, '', purpose, 32))
    this.#nonceKey = Buffer.from(hkdfSync('sha256', secret, '', `${purpose} nonces`, 32))
  }

  /** Returns URL-safe base64. `open` needs the same `context`. */
  seal(plain: string | Uint8Array, context: string): string {
    return this.#sealWith(randomBytes(nonceBytes), plain, context)
  }

  /**
   * Does the same, but returns the same text for the same text and context, on every proxy. The nonce is a keyed
   * digest of both, so that no two different ones share it.
   */
  sealSame(plain: string, context: string): string {
    const digest = createHmac('sha256', this.#nonceKey).update(JSON.stringify([context, plain]))
    return this.#sealWith(digest.digest().subarray(0, nonceBytes), plain, context)
  }

  #sealWith(nonce: Uint8Array, plain: string | Uint8Array, context: string): string {
    const cipher = createCipheriv(algorithm, this.#key, nonce).setAAD(Buffer.from(context))
    const parts = [nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]
    return Buffer.concat(parts).toString('base64url')
  }

  /** Returns undefined if the text was not sealed with the same secret, purpose and context. */
  open(text: string, context: string): Buffer | undefined {
    const sealed = Buffer.from(text, 'base64url')
    // Different base64 texts can decode to the same bytes. Only the text that was made is valid.
    if (sealed.toString('base64url') !== text) return undefined
    if (sealed.length <= nonceBytes + authTagLength) return undefined
    const nonce = sealed.subarray(0, nonceBytes)
    const decipher = createDecipheriv(algorithm, this.#key, nonce, { authTagLength })
    decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-authTagLength))
    try {
      const body = decipher.update(sealed.subarray(nonceBytes, -authTagLength))
      return Buffer.concat([body, decipher.final()])
    } catch {
      return undefined
    }
  }
}
