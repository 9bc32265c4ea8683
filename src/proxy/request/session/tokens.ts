/**
 * What clients carry for session persistence: where they were served and since when, sealed
 * (AES-256-GCM), so that addresses of backends stay inside and nobody can choose an endpoint.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** A session as its token tells it. */
export interface SessionOrigin {
  /** What the log calls the backend: `service/namespace/name:port`, `namespace/name`. */
  readonly backend: string
  readonly host: string
  readonly port: number
  /** Milliseconds since the epoch. */
  readonly begunAt: number
}

const nonceBytes = 12
const tagBytes = 16
/** Longer ones are nobody's. */
const longestToken = 1_024

export class SessionTokens {
  readonly #secret: () => Uint8Array | undefined
  #derived: { readonly from: Uint8Array; readonly key: Buffer } | undefined

  /** `secret`: what all proxies of the sessions share; undefined while it has not arrived. */
  constructor(secret: () => Uint8Array | undefined) {
    this.#secret = secret
  }

  /** Visible ASCII without separators of cookies; undefined without a key. `rule`: for whom it counts. */
  seal({ backend, host, port, begunAt }: SessionOrigin, rule: string): string | undefined {
    const key = this.#key()
    if (key === undefined) return undefined
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    cipher.setAAD(Buffer.from(rule))
    const plain = [begunAt.toString(36), port, host, backend].join(' ')
    const sealed = [nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]
    return Buffer.concat(sealed).toString('base64url')
  }

  /** Undefined where this is not a token that was given for the rule. */
  open(token: string, rule: string): SessionOrigin | undefined {
    const key = this.#key()
    if (key === undefined || token.length > longestToken) return undefined
    const sealed = Buffer.from(token, 'base64url')
    if (sealed.length <= nonceBytes + tagBytes) return undefined
    const nonce = sealed.subarray(0, nonceBytes)
    const options = { authTagLength: tagBytes }
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, options)
    decipher.setAAD(Buffer.from(rule))
    decipher.setAuthTag(sealed.subarray(-tagBytes))
    try {
      const body = decipher.update(sealed.subarray(nonceBytes, -tagBytes))
      const plain = Buffer.concat([body, decipher.final()]).toString()
      const [begunAt = '', port = '', host = '', ...backend] = plain.split(' ')
      return {
        backend: backend.join(' '),
        host,
        port: Number(port),
        begunAt: Number.parseInt(begunAt, 36),
      }
    } catch {
      // Whatever is wrong with it: it is no session.
      return undefined
    }
  }

  #key(): Buffer | undefined {
    const from = this.#secret()
    if (from === undefined) return undefined
    if (this.#derived?.from !== from) {
      const key = Buffer.from(hkdfSync('sha256', from, '', 'sluice session persistence', 32))
      this.#derived = { from, key }
    }
    return this.#derived.key
  }
}

/** The session that a request belongs to, or that its response begins. */
export interface RequestSession {
  readonly tokens: SessionTokens
  /** Undefined where the client has none that counts. */
  readonly origin: SessionOrigin | undefined
}
