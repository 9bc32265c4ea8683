/** Metadata of an issuer, as its own server publishes it (RFC 8414, OpenID Connect Discovery 1.0). */
import { GatewayError } from '../../../errors/index.ts'
import type { Callouts, HttpCallout } from '../../../exchange/exchange.ts'
import type { McpAuthenticationConfig } from '../policy/config.ts'

export type ServerMetadata = Readonly<Record<string, unknown>>

type Target = HttpCallout['target']

/** How the server of an issuer is reached, and what it publishes. */
interface KnownIssuer {
  readonly target: Target
  readonly metadata: ServerMetadata
}

const timeoutMs = 5_000
export const maxAnswerBytes = 256 * 1024
/** As long as published metadata is used; it hardly ever changes. */
const keptMs = 300_000
/** No client can make the gateway ask more often than this while the server fails. */
const failureKeptMs = 1_000

/** Fetches the metadata when it is first asked for, for all who wait, and keeps it for a while. */
export class IssuerMetadata {
  readonly #callouts: Callouts
  readonly #issuer: URL
  readonly #name: string
  readonly #targets: readonly Target[]
  readonly #paths: readonly string[]
  #asked: Promise<KnownIssuer | string> | undefined
  /** In milliseconds of `performance.now()`. */
  #askAgainAt = 0

  constructor(issuer: string, config: McpAuthenticationConfig, callouts: Callouts) {
    this.#name = issuer
    this.#issuer = new URL(issuer)
    this.#callouts = callouts
    // Policies say how the server of the keys is reached, so where that is the issuer's, it is better.
    this.#targets = [...(config.target ? [config.target] : []), ownServer(this.#issuer)]
    this.#paths = metadataPaths(this.#issuer, config.provider === 'IdpB')
  }

  /** Host and port, as in the URL of the issuer. */
  get authority(): string {
    return this.#issuer.host
  }

  /** Or why there is none. */
  find(): Promise<KnownIssuer | string> {
    if (this.#asked !== undefined && performance.now() < this.#askAgainAt) return this.#asked
    this.#askAgainAt = Number.POSITIVE_INFINITY
    this.#asked = this.#ask().then((found) => {
      const wait = typeof found === 'string' ? failureKeptMs : keptMs
      this.#askAgainAt = performance.now() + wait
      return found
    })
    return this.#asked
  }

  async #ask(): Promise<KnownIssuer | string> {
    let why = 'the issuer publishes no metadata'
    for (const target of this.#targets) {
      for (const path of this.#paths) {
        const metadata = await this.#fetch(target, path)
        if (typeof metadata !== 'string') return { target, metadata }
        why = metadata
      }
    }
    return why
  }

  async #fetch(target: Target, path: string): Promise<ServerMetadata | string> {
    const headers = [
      ['host', this.#issuer.host],
      ['accept', 'application/json'],
    ] as const
    const maxResponseBytes = maxAnswerBytes
    try {
      const call = { target, method: 'GET', path, headers, timeoutMs, maxResponseBytes }
      const { status, body } = await this.#callouts.http(call)
      return status === 200 ? this.#read(body) : `the issuer answers ${status}`
    } catch (error) {
      if (error instanceof GatewayError) return 'the issuer cannot be reached'
      throw error
    }
  }

  /** Metadata that names another issuer must not be used (RFC 8414 section 3.3). */
  #read(body: Uint8Array): ServerMetadata | string {
    let value: unknown
    try {
      value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
    } catch {
      return 'the metadata of the issuer is not JSON'
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return 'the metadata of the issuer is no object'
    }
    const metadata = value as ServerMetadata
    const isOurs = typeof metadata.issuer === 'string' && bare(metadata.issuer) === bare(this.#name)
    return isOurs ? metadata : 'the metadata is of another issuer'
  }
}

/** Some servers write their own name with a slash at its end, and some clients do. */
const bare = (url: string): string => url.replace(/\/$/, '')

/** Both forms, the one that the provider is known for first. */
function metadataPaths({ pathname }: URL, openIdFirst: boolean): string[] {
  const path = bare(pathname)
  const paths = [
    `/.well-known/oauth-authorization-server${path}`,
    `${path}/.well-known/openid-configuration`,
  ]
  return openIdFirst ? paths.reverse() : paths
}

/** The server that the URL itself names. */
function ownServer({ protocol, hostname, port }: URL): Target {
  const isSecure = protocol === 'https:'
  const number = port === '' ? (isSecure ? 443 : 80) : Number(port)
  return { type: 'host', host: hostname, port: number, isSecure }
}
