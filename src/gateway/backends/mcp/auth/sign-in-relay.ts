/**
 * The gateway between a client and the provider while a user signs in:
 *
 *   client ──► authorization endpoint of the gateway ──► provider, with a callback of the gateway
 *   provider ──► callback ──► redirect URI of the client, with `iss` of the gateway
 *
 * The gateway stores nothing: the redirect URI and the state of the client travel in a sealed `state`. The
 * gateway redirects only to a URI that the provider accepts for the client, and only from the callback that
 * stands for this URI. So a response for one client cannot be returned to another one.
 */
import type { RespondVerdict, Verdict } from '../../../../ground/exchange/exchange.ts'
import type { McpSignInConfig } from './config.ts'
import { unreachable } from './forwarding.ts'
import { endpointIn, type KnownIssuer } from './issuer-metadata.ts'
import type { ClientView, GatewayServer } from './oauth-metadata.ts'
import { adaptationOf } from './providers.ts'
import { type AcceptedCallbacks, acceptedKey, isRedirectUri, redirectKeyOf } from './redirects.ts'
import { oauthError } from './responses.ts'
import { maxStateLength, type SignIn, SignInSeal } from './sign-in-state.ts'

/** How long a sign-in may take. */
const signInMs = 3_600_000

export class SignInRelay {
  readonly #config: McpSignInConfig
  readonly #accepted: AcceptedCallbacks
  readonly #seal = new SignInSeal()

  constructor(config: McpSignInConfig, accepted: AcceptedCallbacks) {
    this.#config = config
    this.#accepted = accepted
  }

  /** Sends the browser to the provider. */
  async authorize(
    issuer: KnownIssuer,
    server: GatewayServer,
    { query, sessionKey }: ClientView,
  ): Promise<Verdict> {
    const endpoint = endpointIn(issuer.metadata, 'authorization_endpoint')
    if (endpoint === undefined) return noEndpoint
    const secret = sessionKey()
    if (secret === undefined) return noKey
    const asked = readAuthorization(new URLSearchParams(query))
    if (typeof asked === 'string') return refusal(asked)
    const { client, redirect, state, parameters } = asked
    const { clientId, clientSecret } = this.#config
    if (client === clientId && clientSecret !== undefined && !hasChallenge(parameters)) {
      return refusal('code_challenge with the method S256 is required')
    }
    const callback = server.callback(redirectKeyOf(redirect))
    const signIn = {
      redirect,
      ...(state !== undefined && { state }),
      expiresAt: Date.now() + signInMs,
    }
    const sealed = this.#seal.seal(signIn, secret, this.#context(server))
    if (sealed.length > maxStateLength) return refusal('redirect_uri and state are too long')
    parameters.set('redirect_uri', callback)
    parameters.set('state', sealed)
    this.#adapt(parameters)
    for (const [name, value] of parameters) endpoint.searchParams.append(name, value)
    const refused = await this.#check(issuer, endpoint, client, callback)
    return refused ?? redirectTo(endpoint.href)
  }

  /** Changes the parameters of an authorization request as the provider needs them. */
  #adapt(parameters: URLSearchParams): void {
    const { provider, audiences = [] } = this.#config
    const { needsAudience, refusesResource, hasOpaqueTokens } = adaptationOf(provider)
    const [audience] = audiences
    if (needsAudience && audience !== undefined) parameters.set('audience', audience)
    if (refusesResource) parameters.delete('resource')
    if (!hasOpaqueTokens) return
    // The provider refuses `offline_access`, and gives refresh tokens only for its own parameters.
    const asked = (parameters.get('scope') ?? '').split(' ')
    const scopes = asked.filter((scope) => scope !== '' && scope !== 'offline_access')
    parameters.set('scope', [...new Set(['openid', ...scopes])].join(' '))
    if (parameters.has('access_type')) return
    parameters.set('access_type', 'offline')
    if (!parameters.has('prompt')) parameters.set('prompt', 'consent')
  }

  /** Sends the browser back to the client with the response of the provider. */
  returnToClient(
    { metadata }: KnownIssuer,
    server: GatewayServer,
    { query, sessionKey }: ClientView,
    redirectKey: string,
  ): Verdict {
    const secret = sessionKey()
    if (secret === undefined) return noKey
    const response = new URLSearchParams(query)
    const repeated = responseParameters.find((name) => response.getAll(name).length > 1)
    if (repeated !== undefined) return refusal(`${repeated} is repeated`)
    const signIn = this.#seal.open(response.get('state') ?? '', secret, this.#context(server))
    if (signIn === undefined || redirectKeyOf(signIn.redirect) !== redirectKey) {
      return refusal('the state is not valid; start the sign-in again in the client')
    }
    if (signIn.expiresAt < Date.now()) {
      return refusal('the sign-in took too long; start again in the client')
    }
    // Providers that announce `iss` may omit it for some clients. The callback is only of this provider, which
    // prevents mix-ups as well (RFC 9700 section 4.4.2).
    const iss = response.get('iss')
    if (iss !== null && iss !== metadata.issuer) return refusal('the response is of another issuer')
    if (response.has('code') === response.has('error')) {
      return refusal('the response has neither a code nor an error, or both')
    }
    return redirectTo(locationOf(signIn, response, server))
  }

  /** Binds sealed states to the provider, the gateway and the route. */
  #context(server: GatewayServer): string {
    return JSON.stringify([this.#config.issuer, server.issuer, server.callback('')])
  }

  /**
   * Asks the provider whether the client may use the callback, unless a recent response is known.
   * Without this check, an attacker could get a state for any URI. Without a user, `prompt=none`
   * gives a redirect to the callback (OpenID Connect Core 3.1.2.6), or an error if it is unknown.
   */
  async #check(
    issuer: KnownIssuer,
    endpoint: URL,
    client: string,
    callback: string,
  ): Promise<RespondVerdict | undefined> {
    const key = acceptedKey(client, callback)
    if (this.#accepted.get(key) === true) return undefined
    const question = new URL(endpoint)
    question.searchParams.set('prompt', 'none')
    const headers = [['accept', 'text/html']] as const
    const response = await issuer.send(question, { method: 'GET', headers })
    if (response === undefined) return unreachable
    const location = response.headers.find(([name]) => name.toLowerCase() === 'location')?.[1]
    const { signInPath } = adaptationOf(this.#config.provider)
    const isAccepted =
      leadsTo(location, callback) ||
      (signInPath !== undefined && leadsTo(location, new URL(signInPath, endpoint).href, endpoint))
    if (response.status >= 300 && response.status < 400 && isAccepted) {
      this.#accepted.set(key, true)
      return undefined
    }
    return refusal(
      `the provider does not accept this client_id with this redirect_uri; register the client here, or add ${callback} to its redirect URIs`,
    )
  }
}

const hasChallenge = (parameters: URLSearchParams): boolean =>
  (parameters.get('code_challenge') ?? '') !== '' &&
  parameters.get('code_challenge_method') === 'S256'

interface Authorization {
  readonly client: string
  readonly redirect: string
  readonly state: string | undefined
  /** All parameters. */
  readonly parameters: URLSearchParams
}

/** Parameters that must not be repeated (RFC 6749 section 3.1). */
const singleParameters = [
  'client_id',
  'redirect_uri',
  'state',
  'response_type',
  'response_mode',
  'code_challenge',
  'code_challenge_method',
  'scope',
]
const responseParameters = ['code', 'state', 'iss', 'error']

/** Reads a request for authorization. Returns a message if the gateway cannot relay it. */
function readAuthorization(parameters: URLSearchParams): Authorization | string {
  const repeated = singleParameters.find((name) => parameters.getAll(name).length > 1)
  if (repeated !== undefined) return `${repeated} is repeated`
  const client = parameters.get('client_id') ?? ''
  if (client === '') return 'client_id is missing'
  const redirect = parameters.get('redirect_uri')
  if (!isRedirectUri(redirect)) return 'redirect_uri is missing or invalid'
  if (parameters.get('response_type') !== 'code') return 'only the response type code is supported'
  const mode = parameters.get('response_mode')
  if (mode !== null && mode !== 'query') return 'only the response mode query is supported'
  // Signed requests have a redirect URI of their own.
  if (parameters.has('request') || parameters.has('request_uri')) {
    return 'request objects are not supported'
  }
  return { client, redirect, state: parameters.get('state') ?? undefined, parameters }
}

/** Whether the location is this URL with a query. It may be relative to `base`. */
function leadsTo(location: string | undefined, url: string, base?: URL): boolean {
  const [found, expected] = [URL.parse(location ?? '', base?.href), URL.parse(url)]
  return found !== null && found.origin === expected?.origin && found.pathname === expected.pathname
}

/** The redirect URI of the client with the response (RFC 6749 section 4.1.2, RFC 9207). */
function locationOf(
  { redirect, state }: SignIn,
  response: URLSearchParams,
  { issuer }: GatewayServer,
): string {
  const returned = new URLSearchParams()
  for (const name of ['code', 'error', 'error_description', 'error_uri']) {
    const value = response.get(name)
    if (value !== null) returned.set(name, value)
  }
  if (state !== undefined) returned.set('state', state)
  returned.set('iss', issuer)
  return `${redirect}${redirect.includes('?') ? '&' : '?'}${returned}`
}

function redirectTo(location: string): RespondVerdict {
  const headers = [
    ['location', location],
    ['cache-control', 'no-store'],
    ['referrer-policy', 'no-referrer'],
  ] as const
  return { kind: 'respond', status: 302, headers, reason: 'DirectResponse' }
}

/** An error page for the user. Errors must not be sent to a redirect URI that was not checked. */
const refusal = (why: string): RespondVerdict => oauthError(400, 'invalid_request', why)

const noEndpoint = oauthError(500, 'server_error', 'the issuer has no authorization endpoint')
const noKey = oauthError(503, 'temporarily_unavailable', 'the session key is not available yet')
