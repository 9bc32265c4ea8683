/**
 * Sign-out: by the user (OpenID Connect RP-Initiated Logout 1.0), and by the provider, which calls the gateway
 * (Back-Channel Logout 1.0) or lets the browser open a frame (Front-Channel Logout 1.0).
 */
import { TokenVerifier } from '../../engines/auth/jwt/verifier.ts'
import { isObject } from '../../ground/base/json-object.ts'
import type { Exchange, RequestHead, RespondVerdict } from '../../ground/exchange/exchange.ts'
import { nameOfSubject } from '../../ground/model/ended-sessions.ts'
import type { OidcConfig } from './config.ts'
import { deletePieces, type RequestCookies } from './cookies.ts'
import { absolute, isSameSite } from './navigation.ts'
import type { OpenedSession } from './opened-sessions.ts'
import { type Provider, ProviderError } from './provider.ts'
import { empty, jsonResponse, page, parametersOf, problem, redirect } from './responses.ts'
import type { CookieNames } from './sign-in.ts'
import {
  nameOfProviderSession,
  nameOfSession,
  nameOfUnnamedSessions,
  type SignedOut,
} from './signed-out.ts'

/** Maximum size of the form of a back-channel call, in bytes. */
const maxForm = 65_536
/** Keys are fetched again for an unknown key at most this often. */
const keyPauseMs = 30_000
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'

export class SignOut {
  readonly #config: OidcConfig
  readonly #provider: Provider
  readonly #names: CookieNames
  readonly #signedOut: SignedOut
  #verifier: TokenVerifier | undefined
  #verifierAt = Number.NEGATIVE_INFINITY

  constructor(config: OidcConfig, provider: Provider, names: CookieNames, signedOut: SignedOut) {
    this.#config = config
    this.#provider = provider
    this.#names = names
    this.#signedOut = signedOut
  }

  /** Signs out the user of the browser. A link on another site only leads to a page with a button. */
  async byUser(
    request: RequestHead,
    cookies: RequestCookies,
    opened: OpenedSession | undefined,
  ): Promise<RespondVerdict> {
    const { method } = request
    if (method !== 'GET' && method !== 'POST') return problem(405, 'use GET or POST')
    if (!isSameSite(request)) {
      return method === 'GET'
        ? page(confirmation, [], 'another site links to the sign-out')
        : problem(403, 'another site cannot sign you out', 'the sign-out comes from another site')
    }
    if (opened !== undefined) {
      const { id, issuedAt, startedAt } = opened.session
      this.#signedOut.add(nameOfSession(id), issuedAt, startedAt + this.#config.sessionMs)
    }
    const deleted = deletePieces(this.#names.session, cookies)
    const location = await this.#endSession(request, opened)
    // Scripts cannot follow a redirect to another host.
    return (request.headers.get('sec-fetch-mode') ?? 'navigate') === 'navigate'
      ? leave(location, deleted)
      : jsonResponse(200, { logout_url: location ?? '/' }, deleted, 'signed out')
  }

  /** The URL that ends the session at the provider, or where the user goes instead. */
  async #endSession(
    request: RequestHead,
    opened: OpenedSession | undefined,
  ): Promise<string | undefined> {
    const { clientId, postLogoutRedirectURI: after } = this.#config
    const metadata = await this.#provider.metadata().catch(() => undefined)
    const url = URL.parse(metadata?.end_session_endpoint ?? '')
    if (url === null) return after && absolute(after, request)
    const { searchParams } = url
    searchParams.set('client_id', clientId)
    const hint = opened?.session.idToken
    if (hint !== undefined) searchParams.set('id_token_hint', hint)
    // A provider that does not know the address refuses the request, and keeps the user signed in.
    if (after !== undefined) searchParams.set('post_logout_redirect_uri', absolute(after, request))
    return url.href
  }

  /** Handles a call of the provider with a logout token. */
  async byProvider(exchange: Exchange): Promise<RespondVerdict> {
    if (exchange.request.method !== 'POST') return problem(405, 'only POST is possible here')
    const body = await exchange.requestBody.buffer(maxForm)
    if (!body.complete) return invalid('the form is too large')
    const form = new URLSearchParams(Buffer.from(body.bytes).toString())
    const [token, another] = form.getAll('logout_token')
    if (token === undefined || another !== undefined)
      return invalid('exactly one logout_token is needed')
    try {
      const claims = await this.#verify(token)
      if (typeof claims === 'string') return invalid(claims)
      return this.#end(claims)
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      return jsonResponse(503, { error: 'temporarily_unavailable' }, [], error.message)
    }
  }

  /** Repeating a token changes nothing, because only sessions that began before it end. */
  #end(claims: Readonly<Record<string, unknown>>): RespondVerdict {
    const { sub, sid, iat } = claims
    if (typeof iat !== 'number') return invalid('the token has no iat')
    const until = Date.now() + this.#config.sessionMs
    if (typeof sid === 'string') {
      this.#signedOut.add(nameOfProviderSession(sid), iat, until)
      // Some providers name the session only in logout tokens.
      if (typeof sub === 'string') this.#signedOut.add(nameOfUnnamedSessions(sub), iat, until)
    } else if (typeof sub === 'string') this.#signedOut.add(nameOfSubject(sub), iat, until)
    else return invalid('the token has neither sub nor sid')
    return empty([], 'signed out by the provider')
  }

  /** Returns the claims of a logout token, or why it is not valid (section 2.6). */
  async #verify(token: string): Promise<Readonly<Record<string, unknown>> | string> {
    if (!hasLogoutType(token)) return 'the token is of another type'
    let claims = (await this.#currentVerifier(false)).verify(token, Date.now())
    if (claims === 'the token uses an unknown key') {
      claims = (await this.#currentVerifier(true)).verify(token, Date.now())
    }
    if (typeof claims === 'string') return claims
    const { events, nonce } = claims
    if (nonce !== undefined) return 'a logout token has no nonce'
    return isObject(events) && isObject(events[logoutEvent])
      ? claims
      : 'the token is no logout token'
  }

  async #currentVerifier(isKeyUnknown: boolean): Promise<TokenVerifier> {
    const age = performance.now() - this.#verifierAt
    if (this.#verifier === undefined || (isKeyUnknown && age > keyPauseMs)) {
      const [keys, { issuer }] = [await this.#provider.keys(), await this.#provider.metadata()]
      this.#verifier = new TokenVerifier([{ issuer, audiences: [this.#config.clientId], keys }])
      this.#verifierAt = performance.now()
    }
    return this.#verifier
  }

  /** Handles a frame of the provider's sign-out page. It has no cookies, so the session is named by `sid`. */
  async byFrame(request: RequestHead, cookies: RequestCookies): Promise<RespondVerdict> {
    const parameters = parametersOf(request)
    const sid = parameters.get('sid')
    const { issuer } = await this.#provider.metadata().catch(() => this.#config)
    if (sid === null || sid === '' || parameters.get('iss') !== issuer) {
      return problem(400, 'iss and sid of the provider are needed')
    }
    const now = Date.now()
    // The provider has ended the session, so every session of this id is over.
    this.#signedOut.add(
      nameOfProviderSession(sid),
      now / 1_000 + clockLeeway,
      now + this.#config.sessionMs,
      'frame',
    )
    return empty(
      deletePieces(this.#names.session, cookies),
      'signed out by a frame of the provider',
    )
  }
}

/** Maximum accepted clock difference to the provider, in seconds. */
const clockLeeway = 60

function leave(location: string | undefined, cookies: readonly string[]): RespondVerdict {
  return location === undefined
    ? page('<!doctype html><title>Signed out</title><p>You are signed out.', cookies, 'signed out')
    : redirect(location, cookies, 'signed out')
}

const invalid = (why: string): RespondVerdict =>
  jsonResponse(400, { error: 'invalid_request', error_description: why }, [], why)

/** Older providers do not name the type. Tokens of other types must not be accepted in its place. */
function hasLogoutType(token: string): boolean {
  try {
    const header: unknown = JSON.parse(
      Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString(),
    )
    const type = isObject(header) ? header.typ : 'none'
    return type === undefined || /^(?:application\/)?(?:logout\+jwt|jwt)$/i.test(String(type))
  } catch {
    return false
  }
}

const confirmation =
  '<!doctype html><title>Sign out</title><form method="post"><button>Sign out</button></form>'
