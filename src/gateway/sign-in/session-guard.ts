/** The step that runs on each request. For a signed-in user it makes no call and decrypts nothing. */
import {
  type Exchange,
  next,
  type RespondVerdict,
  type Verdict,
} from '../../ground/exchange/exchange.ts'
import type { Step } from '../policies/define.ts'
import type { OidcConfig } from './config.ts'
import { type RequestCookies, readCookies, setPieces } from './cookies.ts'
import type { Keyring } from './keyring.ts'
import { isNavigation, isPreflight, refererPath, returnPathOf } from './navigation.ts'
import {
  type CookieField,
  cookieField,
  type OpenedSession,
  OpenedSessions,
  textOf,
} from './opened-sessions.ts'
import { dropReserved, guardCookies, guardedField } from './other-routes.ts'
import { type Provider, ProviderError } from './provider.ts'
import type { Renewal, Renewals } from './renewals.ts'
import { challenge, unavailable } from './responses.ts'
import { type Session, signInClaimsOf } from './session.ts'
import { type CookieNames, callbackPath, type SignIn, sealWithin, tokenFields } from './sign-in.ts'
import type { SignOut } from './sign-out.ts'
import type { SignedOut } from './signed-out.ts'

interface GuardParts {
  readonly config: OidcConfig
  readonly names: CookieNames
  readonly provider: Provider
  readonly keyring: () => Keyring | undefined
  readonly signIn: SignIn
  readonly signOut: SignOut
  readonly signedOut: SignedOut
  readonly renewals: Renewals
}

type OwnPath = (
  exchange: Exchange,
  cookies: RequestCookies,
  opened: OpenedSession | undefined,
) => Promise<RespondVerdict>

/** Set if the response is one of sign-in itself, whose cookies are not those of a backend. */
const answeredExtension = 'oidc.answered'
/** Pause after a renewal that failed while the tokens are still valid. */
const pauseMs = 5_000

export class SessionGuard implements Step {
  readonly #parts: GuardParts
  readonly #sessions: OpenedSessions
  readonly #paths: ReadonlyMap<string, OwnPath>
  /** Set-Cookie values of a renewed session. */
  readonly #renewedExtension: string
  #lastKeyring: Keyring | undefined

  constructor(parts: GuardParts) {
    this.#parts = parts
    this.#sessions = new OpenedSessions(parts.names.session, parts.names.context)
    this.#renewedExtension = `oidc.renewed ${parts.names.session}`
    this.#paths = this.#ownPaths()
  }

  #ownPaths(): Map<string, OwnPath> {
    const { config, signIn, signOut, keyring } = this.#parts
    const paths = new Map<string, OwnPath>()
    paths.set(config.logoutPath, ({ request }, cookies, opened) =>
      signOut.byUser(request, cookies, opened),
    )
    if (config.backChannelLogoutPath !== undefined) {
      paths.set(config.backChannelLogoutPath, (exchange) => signOut.byProvider(exchange))
    }
    if (config.frontChannelLogoutPath !== undefined) {
      paths.set(config.frontChannelLogoutPath, ({ request }, cookies) =>
        signOut.byFrame(request, cookies),
      )
    }
    paths.set(callbackPath(config), ({ request }, cookies, opened) =>
      signIn.finish(request, cookies, keyring(), opened !== undefined),
    )
    return paths
  }

  onRequest(exchange: Exchange): Verdict | Promise<Verdict> {
    const { request, extensions } = exchange
    const field = guardedField(exchange) ?? cookieField(request.headers)
    const now = Date.now()
    const found = this.#find(field)
    const opened = found !== undefined && this.#isValid(found, now) ? found : undefined
    const own = this.#paths.get(request.path)
    if (own !== undefined) {
      extensions.set(answeredExtension, true)
      return own(exchange, found?.cookies ?? readCookies(textOf(field)), opened)
    }
    if (opened === undefined) return this.#refuse(exchange, textOf(field))
    return now < opened.renewAt
      ? this.#admit(exchange, opened, opened.field)
      : this.#renew(exchange, opened, textOf(field), now)
  }

  #find(field: CookieField): OpenedSession | undefined {
    if (field.length === 0) return undefined
    const keyring = this.#parts.keyring()
    if (keyring !== this.#lastKeyring) {
      this.#sessions.clear()
      this.#lastKeyring = keyring
    }
    return this.#sessions.find(field, keyring)
  }

  #isValid(opened: OpenedSession, now: number): boolean {
    const { config, signedOut } = this.#parts
    const { session } = opened
    if (now >= session.startedAt + config.sessionMs) return false
    if (opened.checkedAt !== signedOut.version) {
      if (signedOut.has(session, now)) return false
      opened.checkedAt = signedOut.version
    }
    return isStrongEnough(session, config, now)
  }

  /** Lets the request pass as that of the user, without the cookies of the gateway. */
  #admit(exchange: Exchange, { session, cookies }: OpenedSession, field: CookieField): Verdict {
    const { request, learned } = exchange
    const { headers } = request
    const { forwardAccessToken, forwardIDToken } = this.#parts.config
    guardCookies(exchange, cookies.others, field)
    learned.jwt = session.claims
    learned.jwtToken = session.accessToken
    if (forwardAccessToken) headers.set('authorization', `Bearer ${session.accessToken}`)
    if (forwardIDToken !== undefined) {
      if (session.idToken === undefined) headers.remove(forwardIDToken)
      else headers.set(forwardIDToken, session.idToken)
    }
    return next
  }

  /** Handles a request without a valid session. */
  #refuse(exchange: Exchange, line: string): Verdict | Promise<Verdict> {
    const { request, learned, extensions } = exchange
    const { config, signIn, keyring } = this.#parts
    const cookies = readCookies(line)
    const isAuthenticated =
      config.passThroughAuthHeader &&
      (learned.jwt ?? learned.apiKey ?? learned.basicAuth) !== undefined
    if (isAuthenticated || isPreflight(request)) {
      guardCookies(exchange, cookies.others, line)
      if (config.forwardIDToken !== undefined) request.headers.remove(config.forwardIDToken)
      return next
    }
    if (isNavigation(request)) {
      extensions.set(answeredExtension, true)
      return signIn.begin(request, cookies, keyring(), returnPathOf(request))
    }
    return this.#challenge(exchange)
  }

  #challenge({ request }: Exchange): RespondVerdict {
    const { config } = this.#parts
    const login_url = `${callbackPath(config)}?return_to=${encodeURIComponent(refererPath(request))}`
    return challenge({ realm: 'sign-in', error: 'login_required', login_url })
  }

  #renew(
    exchange: Exchange,
    opened: OpenedSession,
    line: string,
    now: number,
  ): Verdict | Promise<Verdict> {
    const { session, value } = opened
    const isExpired = now >= session.expiresAt
    if (session.refreshToken === undefined) {
      opened.renewAt = session.expiresAt
      return isExpired ? this.#refuse(exchange, line) : this.#admit(exchange, opened, line)
    }
    // The response of a protocol switch is not made for cookies.
    if (!isExpired && exchange.request.upgrade !== undefined)
      return this.#admit(exchange, opened, line)
    const found = this.#parts.renewals.replace(value, isExpired, () => this.#refresh(session))
    return found instanceof Promise
      ? found.then((renewal) => this.#settle(exchange, opened, line, isExpired, renewal))
      : this.#settle(exchange, opened, line, isExpired, found)
  }

  #settle(
    exchange: Exchange,
    opened: OpenedSession,
    line: string,
    isExpired: boolean,
    renewal: Renewal | undefined,
  ): Verdict | Promise<Verdict> {
    if (renewal === undefined) return this.#admit(exchange, opened, line)
    if (renewal === 'ended' || renewal === 'failed') {
      const { expiresAt } = opened.session
      // Another replica may have renewed the session, so that only this copy of the token is worthless.
      opened.renewAt = renewal === 'ended' ? expiresAt : Math.min(expiresAt, Date.now() + pauseMs)
      if (!isExpired) return this.#admit(exchange, opened, line)
      return renewal === 'ended'
        ? this.#refuse(exchange, line)
        : unavailable('the identity provider is not available', 'the session could not be renewed')
    }
    const replaced = this.#replacement(opened, renewal.value)
    if (replaced === undefined) return this.#refuse(exchange, line)
    exchange.extensions.set(this.#renewedExtension, replaced.set)
    return this.#admit(exchange, replaced.opened, line)
  }

  #replacement({ cookies }: OpenedSession, value: string) {
    const { names, config } = this.#parts
    const whole = setPieces(names.session, value, 0, { own: new Map(), others: '' })
    const line = whole.map((cookie) => cookie.split(';', 1)[0]).join('; ')
    const found = this.#find(line)
    if (found === undefined || !this.#isValid(found, Date.now())) return undefined
    const left = (found.session.startedAt + config.sessionMs - Date.now()) / 1_000
    const set = setPieces(names.session, value, left, cookies)
    // The other cookies of the request are still those for the backend.
    return { set, opened: { ...found, cookies } }
  }

  /** Calls the provider. Only its refusal of the token ends the session. */
  async #refresh(session: Session): Promise<Renewal> {
    const { provider, config, names, keyring } = this.#parts
    const { refreshToken = '', claims, idToken } = session
    try {
      const tokens = await provider.refresh(refreshToken, String(claims.sub))
      const keys = keyring()
      if (keys === undefined) return 'failed'
      const fields = tokenFields(tokens, config, Date.now())
      const kept = signInClaimsOf(session)
      const renewed: Session = {
        ...session,
        ...fields,
        claims: { ...kept, ...((tokens.claims as Session['claims'] | undefined) ?? claims) },
        kept,
        idToken: tokens.idToken ?? idToken,
        refreshToken: tokens.refreshToken ?? refreshToken,
      }
      const value = sealWithin(renewed, config, keys, names.context)
      return value === undefined ? 'ended' : { value }
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      return error.kind === 'refused' ? 'ended' : 'failed'
    }
  }

  onResponse({ response, extensions }: Exchange): void {
    if (response === undefined) return
    const { headers } = response
    if (!extensions.has(answeredExtension) && headers.has('set-cookie')) dropReserved(headers)
    const renewed = extensions.get(this.#renewedExtension) as readonly string[] | undefined
    if (renewed === undefined) return
    for (const cookie of renewed) headers.add('set-cookie', cookie)
    // A cache must not give the session to another user.
    if (!headers.has('cache-control')) headers.set('cache-control', 'private')
  }
}

/** Whether the sign-in is as strong and as recent as the policy asks for. */
function isStrongEnough(
  { claims, startedAt }: Session,
  { acrValues, maxAgeMs }: OidcConfig,
  now: number,
): boolean {
  if (acrValues.length > 0 && !acrValues.includes(String(claims.acr))) return false
  if (maxAgeMs === undefined) return true
  const at = typeof claims.auth_time === 'number' ? claims.auth_time * 1_000 : startedAt
  return now < at + maxAgeMs
}
