/**
 * Sessions live in their ids: the state that a proxy needs is encrypted in the id that the client
 * sends with each request, so that every proxy with the key can continue the session.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { Seal } from '../../../../../ground/secrets/seal.ts'

/** The session of a client at one target. */
export interface TargetSession {
  /** Session id of the server, if it gave one. */
  readonly id?: string
  /** `address:port` of the endpoint that has the session. */
  readonly endpoint?: string
  readonly version: string
  /** Names of the server's capabilities. */
  readonly can: readonly string[]
  /** Id of the stream of the session (older transport), which names the thread that has it. */
  readonly connection?: string
  /** Whether the server speaks the modern era, which has no sessions. */
  readonly isModern?: boolean
}

export interface SessionState {
  /** Identifies the session in logs and in memory. */
  readonly id: string
  /** `namespace/name`. */
  readonly backend: string
  /** Digest of the credentials of the client that began the session, if it was authenticated. */
  readonly principal?: string
  /** Protocol version that was agreed with the client. */
  readonly version: string
  /** JSON of the params of `initialize`, for servers that are added later. Sealed under this name. */
  readonly hello: string
  readonly targets: Readonly<Record<string, TargetSession>>
}

/** Version of the encrypted format. */
const formatVersion = 1
/** Maximum length of a new id. Usual proxies and clients have room for 8 KiB of headers or more. */
export const maxNewIdLength = 7_680
/** Maximum length of an id that is accepted. A longer one would exceed the limit of request heads. */
const maxIdLength = 16_384
const maxStateBytes = 65_536

export class SessionSeal {
  readonly #seal: Seal

  /** `secret` has at least 16 bytes and is the same for all proxies that may continue the session. */
  constructor(secret: Uint8Array) {
    this.#seal = new Seal('sluice mcp session ids', secret)
  }

  /** Encrypts the state into an id of visible ASCII characters (streamable HTTP, session management). */
  seal(state: SessionState): string {
    const plain = deflateRawSync(JSON.stringify([formatVersion, state]))
    return this.#seal.seal(plain, `mcp ${state.backend}`)
  }

  /** Decrypts an id. Returns undefined if it is not an id of this backend. */
  open(id: string, backend: string): SessionState | undefined {
    if (id.length > maxIdLength) return undefined
    // Different base64 texts can decode to the same bytes. Only the text that was sent to the client is
    // valid.
    if (Buffer.from(id, 'base64url').toString('base64url') !== id) return undefined
    const packed = this.#seal.open(id, `mcp ${backend}`)
    if (packed === undefined) return undefined
    try {
      const plain = inflateRawSync(packed, { maxOutputLength: maxStateBytes })
      const [form, state] = JSON.parse(plain.toString()) as [number, SessionState]
      return form === formatVersion && state.backend === backend ? state : undefined
    } catch {
      return undefined
    }
  }
}
