import { Seal } from '../../../ground/secrets/seal.ts'

/** The content of a session token. */
export interface SessionOrigin {
  /** Label of the backend in the log: `service/namespace/name:port` or `namespace/name`. */
  readonly backend: string
  readonly host: string
  readonly port: number
  /** When the session began, in milliseconds since the epoch. */
  readonly begunAt: number
}

/** Maximum length of a token. */
const maxTokenLength = 1_024

/**
 * Makes and reads the tokens of session persistence, which contain the endpoint of a client and the start of
 * its session. They are encrypted, so that clients can neither see nor choose addresses of backends.
 */
export class SessionTokens {
  readonly #secret: () => Uint8Array | undefined
  #current: { readonly secret: Uint8Array; readonly seal: Seal } | undefined

  /** `secret` returns the key that all proxies share; undefined until it has arrived. */
  constructor(secret: () => Uint8Array | undefined) {
    this.#secret = secret
  }

  get #seal(): Seal | undefined {
    const secret = this.#secret()
    if (secret === undefined) return undefined
    if (this.#current?.secret !== secret) {
      this.#current = { secret, seal: new Seal('sluice session persistence', secret) }
    }
    return this.#current.seal
  }

  /** Makes a token for one rule. It can be the value of a cookie. Returns undefined without a key. */
  seal({ backend, host, port, begunAt }: SessionOrigin, rule: string): string | undefined {
    return this.#seal?.seal([begunAt.toString(36), port, host, backend].join(' '), rule)
  }

  /** Reads a token. Returns undefined if the text is not a token of the rule. */
  open(token: string, rule: string): SessionOrigin | undefined {
    const plain = token.length > maxTokenLength ? undefined : this.#seal?.open(token, rule)
    if (plain === undefined) return undefined
    const [begunAt = '', port = '', host = '', ...backend] = plain.toString().split(' ')
    return {
      backend: backend.join(' '),
      host,
      port: Number(port),
      begunAt: Number.parseInt(begunAt, 36),
    }
  }
}

/** The session of a request. It may begin with the response. */
export interface RequestSession {
  readonly tokens: SessionTokens
  /** The content of the client's token; undefined if the client has no valid session. */
  readonly origin: SessionOrigin | undefined
}
