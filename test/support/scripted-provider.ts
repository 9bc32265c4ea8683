/** An OpenID provider that does what a test tells it, also what a good one never does. Every user agrees at once. */
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inSeconds, keySetOf, type SigningKey, sign, signingKey } from './identity-provider.ts'

interface Code {
  readonly nonce: string | undefined
  readonly challenge: string
  readonly redirectURI: string
}

/** How the provider behaves from now on. */
export interface Behaviour {
  user: string
  /** Further claims of the ID token, which replace its own. */
  claims: Record<string, unknown>
  /** Further parameters of the redirect to the callback. */
  answer: Record<string, string>
  expiresIn: number
  /** Status of the token endpoint, if it fails. */
  tokenStatus: number | undefined
  /** Whether discovery fails. */
  isDown: boolean
  /** Further members of the metadata. */
  metadata: Record<string, unknown>
  hasRefreshTokens: boolean
  /** Statuses and errors of the next responses of the revocation endpoint. */
  revocationFailures: [status: number, error: string][]
}

const byDefault = (): Behaviour => ({
  user: 'ann',
  claims: {},
  answer: {},
  expiresIn: 600,
  tokenStatus: undefined,
  isDown: false,
  metadata: {},
  hasRefreshTokens: true,
  revocationFailures: [],
})

export class ScriptedProvider {
  readonly key: SigningKey
  #port = 0
  behaviour = byDefault()
  /** Number of refresh grants, and of refresh tokens that were used twice. */
  refreshes = 0
  reuses = 0
  /** Parameters of the last authorization request and of the last token request. */
  lastAuthorization = new URLSearchParams()
  lastGrant = new URLSearchParams()
  /** Proofs of keys that came with token requests (DPoP). Their tokens are bound. */
  proofs: string[] = []
  /** What the revocation endpoint got: type and token, in order, with the Authorization field of the client. */
  revocations: { type: string; token: string; client: string | undefined }[] = []
  #codes = new Map<string, Code>()
  #refreshTokens = new Map<string, 'valid' | 'used'>()
  readonly #server = createServer((request, response) => {
    this.#handle(request, response).catch(() => response.destroy())
  })

  constructor(key: SigningKey) {
    this.key = key
  }

  get port(): number {
    return this.#port
  }

  get issuer(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  async start(): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
    return this
  }

  /** Behaves well again. */
  reset(change: Partial<Behaviour> = {}): void {
    this.behaviour = { ...byDefault(), ...change }
    this.refreshes = 0
    this.reuses = 0
    this.revocations = []
    this.proofs = []
  }

  /** Ends all refresh tokens, as an administrator does. */
  revokeAll(): void {
    this.#refreshTokens.clear()
  }

  /** A token that says that sessions have ended; claims that are undefined are left out. */
  logoutToken(claims: Record<string, unknown>, typ = 'logout+jwt'): Promise<string> {
    const all = {
      iss: this.issuer,
      aud: 'app',
      iat: inSeconds(0),
      jti: randomUUID(),
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
      ...claims,
    }
    return sign(this.key, all, { typ })
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', this.issuer)
    const json = (status: number, value: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(value))
    }
    if (this.behaviour.isDown) return json(503, { error: 'down' })
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return json(200, this.#metadata())
      case '/keys':
        return json(200, keySetOf(this.key))
      case '/authorize': {
        response.writeHead(302, { location: this.#authorize(url.searchParams) })
        response.end()
        return
      }
      case '/token': {
        let body = ''
        for await (const chunk of request) body += chunk
        this.lastGrant = new URLSearchParams(body)
        const { dpop } = request.headers
        if (dpop !== undefined) this.proofs.push(String(dpop))
        const [status, answer] = await this.#grant(this.lastGrant)
        const isBound = status === 200 && dpop !== undefined
        return json(status, isBound ? { ...(answer as object), token_type: 'DPoP' } : answer)
      }
      case '/revoke': {
        let body = ''
        for await (const chunk of request) body += chunk
        const [status, error] = this.#revoke(new URLSearchParams(body), request)
        return json(status, { error })
      }
      default:
        return json(404, {})
    }
  }

  #revoke(form: URLSearchParams, { headers }: IncomingMessage): [status: number, error: string] {
    const token = form.get('token') ?? ''
    const type = form.get('token_type_hint') ?? ''
    this.revocations.push({ type, token, client: headers.authorization })
    return this.behaviour.revocationFailures.shift() ?? [200, '']
  }

  #metadata() {
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      revocation_endpoint: `${this.issuer}/revoke`,
      end_session_endpoint: `${this.issuer}/end`,
      jwks_uri: `${this.issuer}/keys`,
      authorization_response_iss_parameter_supported: true,
      ...this.behaviour.metadata,
    }
  }

  #authorize(parameters: URLSearchParams): string {
    this.lastAuthorization = parameters
    const redirectURI = parameters.get('redirect_uri') ?? ''
    const code = randomUUID()
    this.#codes.set(code, {
      nonce: parameters.get('nonce') ?? undefined,
      challenge: parameters.get('code_challenge') ?? '',
      redirectURI,
    })
    const answer = new URL(redirectURI)
    const state = parameters.get('state') ?? ''
    const fields = { code, state, iss: this.issuer, ...this.behaviour.answer }
    for (const [name, value] of Object.entries(fields)) {
      if (value !== '') answer.searchParams.set(name, value)
    }
    return answer.href
  }

  async #grant(form: URLSearchParams): Promise<[status: number, answer: unknown]> {
    const { tokenStatus } = this.behaviour
    if (form.get('grant_type') === 'refresh_token') {
      this.refreshes++
      if (tokenStatus !== undefined) return [tokenStatus, { error: 'temporarily_unavailable' }]
      const token = form.get('refresh_token') ?? ''
      const known = this.#refreshTokens.get(token)
      if (known === 'used') this.reuses++
      if (known !== 'valid') return [400, { error: 'invalid_grant' }]
      this.#refreshTokens.set(token, 'used')
      return [200, await this.#tokens(undefined)]
    }
    if (tokenStatus !== undefined) return [tokenStatus, { error: 'temporarily_unavailable' }]
    const code = this.#codes.get(form.get('code') ?? '')
    this.#codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (code?.challenge !== challenge || code.redirectURI !== form.get('redirect_uri')) {
      return [400, { error: 'invalid_grant' }]
    }
    return [200, await this.#tokens(code.nonce)]
  }

  async #tokens(nonce: string | undefined) {
    const { user, claims, expiresIn, hasRefreshTokens } = this.behaviour
    const refreshToken = randomUUID()
    if (hasRefreshTokens) this.#refreshTokens.set(refreshToken, 'valid')
    const own = {
      iss: this.issuer,
      aud: 'app',
      sub: user,
      sid: `session-of-${user}`,
      iat: inSeconds(0),
      ...(nonce !== undefined && { nonce }),
    }
    return {
      access_token: `access-${user}-${randomUUID()}`,
      token_type: 'Bearer',
      expires_in: expiresIn,
      id_token: await sign(this.key, { ...own, ...claims }),
      ...(hasRefreshTokens && { refresh_token: refreshToken }),
    }
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

export async function startScriptedProvider(): Promise<ScriptedProvider> {
  return new ScriptedProvider(await signingKey('provider')).start()
}
