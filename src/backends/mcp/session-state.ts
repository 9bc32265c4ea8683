/**
 * Sessions live in their ids: what a proxy must know to carry one on is sealed into the id that the
 * client brings with each request (AES-256-GCM), so that any proxy with the key can. Whatever was not
 * sealed by such a proxy, for this backend, is no session.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'

/** What a session has at one target. */
export interface TargetSession {
  /** Of the server; absent where it gave none. */
  readonly id?: string
  /** `address:port` that has the session. */
  readonly endpoint?: string
  readonly version: string
  /** Names of capabilities that the server has. */
  readonly can: readonly string[]
}

export interface SessionState {
  /** Of the session itself, for logs and for what is known of it besides. */
  readonly id: string
  /** `namespace/name`. */
  readonly backend: string
  /** Who began it, as far as that is known; a digest. */
  readonly principal?: string
  /** Of the protocol, as it was settled with the client. */
  readonly version: string
  /** JSON of what the client has said of itself, for servers that come later. */
  readonly hello: string
  readonly targets: Readonly<Record<string, TargetSession>>
}

const nonceBytes = 12
const tagBytes = 16
/** Of the form of what is sealed. */
const formVersion = 1
/** Longer ids are nobody's: they could not have come back through the head limit. */
const longestId = 16_384
const longestState = 65_536

export class SessionSeal {
  readonly #key: Buffer

  /** `secret`: at least 16 bytes that all proxies of the session share. */
  constructor(secret: Uint8Array) {
    this.#key = Buffer.from(hkdfSync('sha256', secret, '', 'sluice mcp session ids', 32))
  }

  /** An id of visible ASCII (streamable HTTP, session management). */
  seal(state: SessionState): string {
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce)
    cipher.setAAD(aad(state.backend))
    const plain = deflateRawSync(JSON.stringify([formVersion, state]))
    const sealed = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
    return sealed.toString('base64url')
  }

  /** The session behind an id; undefined where it is none of this backend's. */
  open(id: string, backend: string): SessionState | undefined {
    if (id.length > longestId) return undefined
    const sealed = Buffer.from(id, 'base64url')
    if (sealed.length <= nonceBytes + tagBytes) return undefined
    // One session, one id: whatever else decodes to the same bytes was not given to anybody.
    if (sealed.toString('base64url') !== id) return undefined
    try {
      const nonce = sealed.subarray(0, nonceBytes)
      const decipher = createDecipheriv('aes-256-gcm', this.#key, nonce, {
        authTagLength: tagBytes,
      })
      decipher.setAAD(aad(backend))
      decipher.setAuthTag(sealed.subarray(-tagBytes))
      const body = sealed.subarray(nonceBytes, -tagBytes)
      const packed = Buffer.concat([decipher.update(body), decipher.final()])
      const plain = inflateRawSync(packed, { maxOutputLength: longestState })
      const [form, state] = JSON.parse(plain.toString()) as [number, SessionState]
      return form === formVersion && state.backend === backend ? state : undefined
    } catch {
      // Whatever is wrong with it: it is not an id that was given to anybody.
      return undefined
    }
  }
}

const aad = (backend: string): Buffer => Buffer.from(`mcp ${backend}`)

export const newSessionId = (): string => randomBytes(12).toString('hex')

/** A digest of who somebody is; undefined where nothing is known. */
export function principalDigest(parts: readonly (string | undefined)[]): string | undefined {
  if (parts.every((part) => part === undefined)) return undefined
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22)
}
