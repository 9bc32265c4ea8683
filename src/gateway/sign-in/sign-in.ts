/**
 * The authorization code flow (OpenID Connect Core 1.0, 3.1) with PKCE:
 *
 *   page ──► redirect to the provider, with a transaction in a cookie
 *   provider ──► callback: its answer is checked against the transaction ──► session, redirect to the page
 *
 * Each sign-in has a transaction of its own, so that several tabs can sign in at once. Only the browser that began
 * a sign-in can complete it.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { RequestHead, RespondVerdict } from '../../ground/exchange/exchange.ts'
import type { LearnedRecord } from '../../ground/exchange/learned.ts'
import type { OidcConfig } from './config.ts'
import {
  deleteCookie,
  maxValueLength,
  type RequestCookies,
  setCookie,
  setPieces,
} from './cookies.ts'
import type { Keyring } from './keyring.ts'
import { absolute, pathOf, safeReturnPath } from './navigation.ts'
import type { ExpectedAnswer, Provider, Tokens } from './provider.ts'
import { parametersOf, problem, providerProblem, redirect, unavailable } from './responses.ts'
import { type Session, sealSession } from './session.ts'

/** The names of a policy's cookies, and what binds their content to it. */
export interface CookieNames {
  readonly session: string
  /** Beginning of the names of transactions; the id follows. */
  readonly transaction: string
  /** Counts sign-ins, to notice a browser that does not keep the session. */
  readonly count: string
  readonly context: string
}

interface Transaction extends ExpectedAnswer {
  readonly returnTo: string
  readonly startedAt: number
}

/** Maximum number of unfinished sign-ins of a browser; older ones are dropped. */
const maxTransactions = 6
/** So many sign-ins within `countSeconds` mean that the browser does not keep the session. */
const maxSignIns = 4
const countSeconds = 30

const random = (bytes: number): string => randomBytes(bytes).toString('base64url')

export class SignIn {
  readonly #config: OidcConfig
  readonly #provider: Provider
  readonly #names: CookieNames

  constructor(config: OidcConfig, provider: Provider, names: CookieNames) {
    this.#config = config
    this.#provider = provider
    this.#names = names
  }

  /** Sends the browser to the provider. */
  async begin(
    request: RequestHead,
    cookies: RequestCookies,
    keyring: Keyring | undefined,
    returnTo: string,
  ): Promise<RespondVerdict> {
    const { redirectURI } = this.#config
    if (keyring === undefined) return noKey
    if (request.authority === '') return problem(400, 'the request has no host')
    const callback = absolute(redirectURI, request)
    const elsewhere = this.#otherHost(request, callback, returnTo)
    if (elsewhere !== undefined) return elsewhere
    if (Number(cookies.own.get(this.#names.count)?.at(-1) ?? 0) >= maxSignIns) return notKept
    // Begins with the time, so that the names are sorted by age.
    const id = Date.now().toString(36) + random(6)
    const transaction: Transaction = {
      state: `${id}.${random(24)}`,
      nonce: random(24),
      verifier: random(32),
      redirectURI: callback,
      returnTo,
      startedAt: Date.now(),
    }
    const sealed = keyring.seal(JSON.stringify(transaction), this.#transactionContext)
    try {
      const location = await this.#provider.authorizationURL(transaction)
      const seconds = this.#config.signInMs / 1_000
      const set = setCookie(this.#names.transaction + id, sealed, seconds)
      return redirect(location, [set, ...this.#deleteOldest(cookies)], 'sign-in begins')
    } catch (error) {
      return providerProblem(error)
    }
  }

  get #transactionContext(): string {
    return `transaction ${this.#names.context}`
  }

  /** The transaction is a cookie of one host, so the sign-in begins on the host of the callback. */
  #otherHost(request: RequestHead, callback: string, returnTo: string): RespondVerdict | undefined {
    const { origin, host, pathname, protocol } = new URL(callback)
    if (URL.parse(`${protocol}//${request.authority}`)?.host === host) return undefined
    const location = `${origin}${pathname}?return_to=${encodeURIComponent(returnTo)}`
    return redirect(location, [], 'sign-in begins on the host of the callback')
  }

  #deleteOldest({ own }: RequestCookies): string[] {
    const names = [...own.keys()].filter((name) => name.startsWith(this.#names.transaction)).sort()
    return names.slice(0, Math.max(0, names.length - maxTransactions + 1)).map(deleteCookie)
  }

  /** Handles a request to the callback. `hasSession`: the browser is signed in. */
  async finish(
    request: RequestHead,
    cookies: RequestCookies,
    keyring: Keyring | undefined,
    hasSession: boolean,
  ): Promise<RespondVerdict> {
    if (request.method !== 'GET') return problem(405, 'use GET')
    if (keyring === undefined) return noKey
    const answer = parametersOf(request)
    if (!answerParameters.some((name) => answer.has(name))) {
      const returnTo = safeReturnPath(answer.get('return_to'))
      if (hasSession) return redirect(returnTo, [], 'already signed in')
      return this.begin(request, cookies, keyring, returnTo)
    }
    const repeated = answerParameters.find((name) => answer.getAll(name).length > 1)
    if (repeated !== undefined) return problem(400, `${repeated} is repeated`)
    const name = this.#names.transaction + (answer.get('state') ?? '').split('.', 1)[0]
    const transaction = this.#findTransaction(name, answer.get('state') ?? '', cookies, keyring)
    if (transaction === undefined) {
      // The user has gone back, or reloads the page.
      return hasSession ? redirect('/', [], 'already signed in') : unknownSignIn
    }
    const done = deleteCookie(name)
    try {
      const tokens = await this.#provider.redeem(answer, transaction)
      return this.#establish(tokens, transaction, cookies, keyring, done)
    } catch (error) {
      return providerProblem(error, [done])
    }
  }

  #findTransaction(
    name: string,
    state: string,
    { own }: RequestCookies,
    keyring: Keyring,
  ): Transaction | undefined {
    for (const value of own.get(name) ?? []) {
      const plain = keyring.open(value, this.#transactionContext)
      if (plain === undefined) continue
      const transaction = JSON.parse(plain.toString()) as Transaction
      const isCurrent = Date.now() < transaction.startedAt + this.#config.signInMs
      if (isCurrent && isEqual(transaction.state, state)) return transaction
    }
    return undefined
  }

  #establish(
    tokens: Tokens,
    { returnTo }: Transaction,
    cookies: RequestCookies,
    keyring: Keyring,
    done: string,
  ): RespondVerdict {
    const { acrValues, sessionMs } = this.#config
    const claims = tokens.claims as LearnedRecord
    if (acrValues.length > 0 && !acrValues.includes(String(claims.acr))) {
      const detail = `acr is ${String(claims.acr)}, not ${acrValues.join(' or ')}`
      return problem(403, 'this page needs a stronger sign-in', detail, [done])
    }
    const startedAt = Date.now()
    const first = { id: random(16), startedAt, issuedAt: Number(claims.iat), claims }
    const value = sealWithin(
      { ...first, ...tokenFields(tokens, this.#config, startedAt) },
      this.#config,
      keyring,
      this.#names.context,
    )
    if (value === undefined) return problem(500, tooLarge, tooLarge, [done])
    const count = Number(cookies.own.get(this.#names.count)?.at(-1) ?? 0) + 1
    const set = [
      ...setPieces(this.#names.session, value, sessionMs / 1_000, cookies),
      setCookie(this.#names.count, String(Math.min(count, maxSignIns)), countSeconds),
      done,
    ]
    return redirect(returnTo, set, `signed in as ${String(claims.sub)}`)
  }
}

const answerParameters = ['code', 'error', 'state', 'iss']

/** The fields of a session that each renewal replaces. */
export function tokenFields(
  { accessToken, idToken, refreshToken, expiresIn }: Tokens,
  { defaultTokenMs, refreshToken: isRefreshed }: OidcConfig,
  now: number,
) {
  const lifetime = expiresIn === undefined ? defaultTokenMs : expiresIn * 1_000
  return {
    renewedAt: now,
    expiresAt: now + lifetime,
    accessToken,
    idToken,
    ...(isRefreshed && { refreshToken }),
  }
}

/** Seals a session. Leaves the ID token out if it is only a hint and there is no room for it. Undefined if too long. */
export function sealWithin(
  session: Session,
  { forwardIDToken }: OidcConfig,
  keyring: Keyring,
  context: string,
): string | undefined {
  const whole = sealSession(session, keyring, context)
  if (whole.length < maxValueLength - 2) return whole
  if (forwardIDToken !== undefined) return undefined
  const shorter = sealSession({ ...session, idToken: undefined }, keyring, context)
  return shorter.length < maxValueLength - 2 ? shorter : undefined
}

function isEqual(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)]
  return one.length === other.length && timingSafeEqual(one, other)
}

const tooLarge = `the tokens of the identity provider are too large for cookies (${maxValueLength} bytes): ask for fewer scopes or claims`
const noKey = unavailable(
  'the gateway has no key yet',
  'the key that seals sessions has not arrived',
)
const notKept = problem(
  400,
  'the browser does not keep the session cookie: check that cookies are allowed, and that the page is opened over https',
  'several sign-ins in a row without a session',
)
const unknownSignIn = problem(
  400,
  'this sign-in has expired, or another browser has begun it: open the page again',
  'no transaction for the state',
)

/** The paths of a policy that the gateway answers itself. */
export const callbackPath = ({ redirectURI }: OidcConfig): string => pathOf(redirectURI)
