/** Metadata that the authorization server of an issuer publishes (RFC 8414, OpenID Connect Discovery 1.0). */
import { isObject, type JsonObject } from '../../../../ground/base/json-object.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import type {
  Callouts,
  HttpCallout,
  HttpCalloutResponse,
} from '../../../../ground/exchange/exchange.ts'
import type { McpSignInConfig } from './config.ts'
import { adaptationOf } from './providers.ts'

type Target = HttpCallout['target']

export interface KnownIssuer {
  readonly metadata: JsonObject
  /**
   * Sends a request to an endpoint of the issuer, which may be on another host than its metadata. Resolves to
   * undefined if it cannot be reached.
   */
  send(
    url: URL,
    call: Pick<HttpCallout, 'method' | 'headers' | 'body'>,
  ): Promise<HttpCalloutResponse | undefined>
}

const timeoutMs = 5_000
/** Timeout of requests to endpoints. */
const requestTimeoutMs = 10_000
const maxBytes = 256 * 1024
/** How long metadata is cached. It rarely changes. */
const cacheMs = 300_000
/** How long a failure is cached, so that clients cannot cause frequent requests. */
const failureCacheMs = 1_000

/** Fetches metadata at the first use and caches it. */
export class IssuerMetadata {
  readonly #callouts: Callouts
  readonly #issuer: URL
  readonly #name: string
  readonly #targets: readonly Target[]
  readonly #paths: readonly string[]
  #cached: Promise<KnownIssuer | string> | undefined
  /** When the cached result expires, in milliseconds of `performance.now()`. */
  #expiresAt = 0

  constructor(issuer: string, config: McpSignInConfig, callouts: Callouts) {
    this.#name = issuer
    this.#issuer = new URL(issuer)
    this.#callouts = callouts
    // The server of the JWKS is tried first, because policies configure the connections to it.
    this.#targets = [...(config.target ? [config.target] : []), ownServer(this.#issuer)]
    this.#paths = metadataPaths(this.#issuer, adaptationOf(config.provider).isOpenIdFirst === true)
  }

  async #send(
    target: Target,
    ...[url, call]: Parameters<KnownIssuer['send']>
  ): ReturnType<KnownIssuer['send']> {
    try {
      return await this.#callouts.http({
        ...call,
        target: url.origin === this.#issuer.origin ? target : ownServer(url),
        path: `${url.pathname}${url.search}`,
        headers: [['host', url.host], ...call.headers],
        timeoutMs: requestTimeoutMs,
        maxResponseBytes: maxBytes,
      })
    } catch (error) {
      if (error instanceof GatewayError) return undefined
      throw error
    }
  }

  /** Resolves to the metadata of the issuer, or to a text that says why there is none. */
  find(): Promise<KnownIssuer | string> {
    if (this.#cached !== undefined && performance.now() < this.#expiresAt) return this.#cached
    this.#expiresAt = Number.POSITIVE_INFINITY
    this.#cached = this.#ask().then((found) => {
      const wait = typeof found === 'string' ? failureCacheMs : cacheMs
      this.#expiresAt = performance.now() + wait
      return found
    })
    return this.#cached
  }

  async #ask(): Promise<KnownIssuer | string> {
    let why = 'the issuer publishes no metadata'
    for (const target of this.#targets) {
      for (const path of this.#paths) {
        const metadata = await this.#fetch(target, path)
        if (typeof metadata !== 'string') {
          return { metadata, send: (url, call) => this.#send(target, url, call) }
        }
        why = metadata
      }
    }
    return why
  }

  async #fetch(target: Target, path: string): Promise<JsonObject | string> {
    const headers = [
      ['host', this.#issuer.host],
      ['accept', 'application/json'],
    ] as const
    const maxResponseBytes = maxBytes
    try {
      const call = { target, method: 'GET', path, headers, timeoutMs, maxResponseBytes }
      const { status, body } = await this.#callouts.http(call)
      return status === 200 ? this.#read(body) : `the issuer responds with ${status}`
    } catch (error) {
      if (error instanceof GatewayError) return 'the issuer cannot be reached'
      throw error
    }
  }

  /** Parses metadata. Metadata that names another issuer is rejected (RFC 8414 section 3.3). */
  #read(body: Uint8Array): JsonObject | string {
    let value: unknown
    try {
      value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
    } catch {
      return 'the metadata of the issuer is not JSON'
    }
    if (!isObject(value)) return 'the metadata of the issuer is no object'
    const isOurs = typeof value.issuer === 'string' && bare(value.issuer) === bare(this.#name)
    return isOurs ? value : 'the metadata is of another issuer'
  }
}

/** Returns a member of the metadata that is a URL of HTTP; undefined if it is anything else. */
export function endpointIn(metadata: JsonObject, member: string): URL | undefined {
  const url = typeof metadata[member] === 'string' ? URL.parse(metadata[member]) : null
  return url !== null && /^https?:$/.test(url.protocol) ? url : undefined
}

/** Removes a trailing slash, which some servers and clients add. */
const bare = (url: string): string => url.replace(/\/$/, '')

/** Metadata paths of RFC 8414 and of OpenID Connect Discovery, in the order in which to try them. */
function metadataPaths({ pathname }: URL, openIdFirst: boolean): string[] {
  const path = bare(pathname)
  const paths = [
    `/.well-known/oauth-authorization-server${path}`,
    `${path}/.well-known/openid-configuration`,
  ]
  return openIdFirst ? paths.reverse() : paths
}

/** Returns the server that a URL names. */
function ownServer({ protocol, hostname, port }: URL): Target {
  const isSecure = protocol === 'https:'
  const number = port === '' ? (isSecure ? 443 : 80) : Number(port)
  return { type: 'host', host: hostname, port: number, isSecure }
}
