/**
 * A token endpoint that is strict about everything in a request: client authentication, grant, parameters that are
 * repeated although they must not be, and tokens of users, which it verifies. Its tokens say what they were issued for.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  createLocalJWKSet,
  decodeProtectedHeader,
  importSPKI,
  type JWTPayload,
  jwtVerify,
} from 'jose'
import { keySetOf, type SigningKey } from './identity-provider.ts'

const urn = 'urn:ietf:params:oauth:'
const clientSecret = 'odd:secret/+%'

export interface TokenCall {
  readonly path: string
  readonly form: URLSearchParams
  readonly authorization: string | undefined
  readonly dpop: string | undefined
  /** Header of the client assertion. */
  readonly assertion: Readonly<Record<string, unknown>> | undefined
}

type Answer = { readonly status: number; readonly body: unknown }

const refusal = (error: string, status = 400, more: object = {}): Answer => ({
  status,
  body: { error, error_description: 'a text that no log may contain', ...more },
})

export class StrictTokenEndpoint {
  readonly clientSecret = clientSecret
  readonly calls: TokenCall[] = []
  /** Public key, in PEM, of clients that sign assertions, and the audience of these. */
  clientKey: { readonly pem: string; readonly alg: string } | undefined
  readonly assertionAudience = 'urn:the-server'
  /** Keys of users' tokens. */
  userKeys: readonly SigningKey[] = []
  expiresIn: unknown = 300
  /** Answered to every request from now on, if set. */
  fixed: Answer | 'hang' | undefined
  /** Resolved before an answer is sent. */
  gate: Promise<void> = Promise.resolve()
  #issued = 0
  readonly #assertions = new Set<string>()
  readonly #server = createServer((request, response) => {
    this.#handle(request, response).catch(() => response.destroy())
  })

  async start(): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    return this
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  reset(): void {
    this.calls.length = 0
    this.expiresIn = 300
    this.fixed = undefined
    this.gate = Promise.resolve()
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const piece of request) text += piece
    const path = request.url ?? ''
    const { authorization } = request.headers
    const form = new URLSearchParams(text)
    const sent = form.get('client_assertion')
    const assertion = sent === null ? undefined : { ...decodeProtectedHeader(sent) }
    if (path !== '/.well-known/openid-configuration') {
      const dpop = request.headers.dpop === undefined ? undefined : String(request.headers.dpop)
      this.calls.push({ path, form, authorization, dpop, assertion })
    }
    const { fixed } = this
    if (fixed === 'hang') return
    await this.gate
    const { status, body } =
      path === '/.well-known/openid-configuration'
        ? { status: 200, body: { issuer: this.url, token_endpoint: `${this.url}/found` } }
        : (fixed ?? (await this.#answer(request, form)))
    response.writeHead(status, { 'content-type': 'application/json' })
    const isBound =
      request.headers.dpop !== undefined && path.startsWith('/bound') && status === 200
    const given = isBound ? { ...(body as object), token_type: 'DPoP' } : body
    response.end(typeof given === 'string' ? given : JSON.stringify(given))
  }

  async #answer(request: IncomingMessage, form: URLSearchParams): Promise<Answer> {
    const once = [
      'grant_type',
      'subject_token',
      'assertion',
      'scope',
      'client_id',
      'requested_token_type',
    ]
    const { method, headers } = request
    if (method !== 'POST') return refusal('invalid_request', 405)
    if (headers['content-type']?.startsWith('application/x-www-form-urlencoded') !== true) {
      return refusal('invalid_request')
    }
    if (once.some((name) => form.getAll(name).length > 1)) return refusal('invalid_request')
    const client = await this.#client(headers.authorization, form)
    if (client === undefined) return refusal('invalid_client', 401)
    return this.#grant(client, form)
  }

  /** Returns the client id; a client may authenticate in one way only. */
  async #client(
    authorization: string | undefined,
    form: URLSearchParams,
  ): Promise<string | undefined> {
    const ways = [authorization, form.get('client_secret'), form.get('client_assertion')]
    if (ways.filter((way) => way !== undefined && way !== null).length !== 1) return undefined
    if (authorization !== undefined) {
      const [id = '', secret = ''] = Buffer.from(authorization.replace(/^Basic /, ''), 'base64')
        .toString()
        .split(':')
        .map((part) => decodeURIComponent(part.replaceAll('+', ' ')))
      return secret === clientSecret && !form.has('client_id') ? id : undefined
    }
    const id = form.get('client_id') ?? ''
    const sent = form.get('client_assertion')
    if (sent === null) return form.get('client_secret') === clientSecret ? id : undefined
    if (form.get('client_assertion_type') !== `${urn}client-assertion-type:jwt-bearer`)
      return undefined
    const { pem, alg } = this.clientKey ?? { pem: '', alg: '' }
    const { payload } = await jwtVerify(sent, await importSPKI(pem, alg), {
      issuer: id,
      subject: id,
      audience: this.assertionAudience,
      algorithms: [alg],
      requiredClaims: ['jti', 'exp', 'iat'],
    })
    // Each assertion is valid once (RFC 7523 section 3).
    const { jti = '' } = payload
    if (this.#assertions.has(jti)) return undefined
    this.#assertions.add(jti)
    return id
  }

  async #grant(client: string, form: URLSearchParams): Promise<Answer> {
    const grant = form.get('grant_type')
    if (grant === 'client_credentials') return this.#issue(client, form)
    const isExchange = grant === `${urn}grant-type:token-exchange`
    if (!isExchange && grant !== `${urn}grant-type:jwt-bearer`)
      return refusal('unsupported_grant_type')
    const token = form.get(isExchange ? 'subject_token' : 'assertion')
    if (token === null) return refusal('invalid_request')
    if (isExchange && form.get('subject_token_type') === null) return refusal('invalid_request')
    if (form.has('actor_token') !== form.has('actor_token_type')) return refusal('invalid_request')
    if (token.startsWith('jag-')) return this.#issue(token.slice(4), form)
    let user: JWTPayload
    try {
      user = (await jwtVerify(token, createLocalJWKSet(keySetOf(...this.userKeys)))).payload
    } catch {
      return refusal('invalid_grant')
    }
    if (user.blocked === true) return refusal('access_denied')
    if (user.weak === true) {
      return refusal('interaction_required', 400, {
        claims: '{"access_token":{"acr":{"value":"2"}}}',
      })
    }
    if (form.get('requested_token_type') === `${urn}token-type:id-jag`) {
      return {
        status: 200,
        body: {
          access_token: `jag-${user.sub}`,
          issued_token_type: `${urn}token-type:id-jag`,
          token_type: 'N_A',
          expires_in: 60,
        },
      }
    }
    return this.#issue(String(user.sub), form)
  }

  #issue(owner: string, form: URLSearchParams): Answer {
    this.#issued += 1
    return {
      status: 200,
      body: {
        access_token:
          `for-${owner}-${form.getAll('audience').join('+')}-${form.get('scope') ?? ''}-${this.#issued}`.replaceAll(
            ' ',
            '_',
          ),
        issued_token_type: `${urn}token-type:access_token`,
        token_type: 'Bearer',
        ...(this.expiresIn !== undefined && { expires_in: this.expiresIn }),
        // Some servers add one that is not of the URL of the endpoint.
        id_token: 'of.another.issuer',
      },
    }
  }
}
