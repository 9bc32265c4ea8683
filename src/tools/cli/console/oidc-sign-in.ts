/**
 * Sign-in to a console at an OpenID provider, by the authorization code flow with PKCE:
 *
 *   /sign-in ──► provider, with the id of the sign-in in a cookie
 *   provider ──► /signed-in: the answer is checked, the claim gives roles ──► page, with a key in the fragment
 *
 * Only the browser that began a sign-in can complete it. The key is a session in the memory of this process.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type {
  ExpectedAnswer,
  Provider,
  ProviderConfig,
  SendRequest,
  Tokens,
} from '../../../gateway/sign-in/provider.ts'
import { endedId, type HasEnded, nameOfSubject } from '../../../ground/model/ended-sessions.ts'
import { UsageError } from '../shared/output.ts'
import type { Person, Role, SignIn, SignInStep } from './server/sign-in.ts'

interface OidcSettings {
  readonly consoleOidcIssuer: string | undefined
  readonly consoleOidcClient: string | undefined
  readonly consoleOidcSecretFile: string | undefined
  readonly consoleOidcScopes: readonly string[]
  readonly consoleOidcClaim: string
  readonly consoleReaders: readonly string[]
  readonly consoleOperators: readonly string[]
}

/** How long a person may take to sign in. */
const signInMs = 600_000
/** How long a session lasts. Roles that a provider takes away are lost then. */
const sessionMs = 8 * 3_600_000
const maxPending = 1_000
const maxSessions = 10_000
const requestMs = 10_000
const maxBytes = 256 * 1024

const random = (): string => randomBytes(32).toString('base64url')

/** Values by an unguessable id, each for a limited time. If there are too many, the oldest one goes. */
class Expiring<Value> {
  readonly #lifetimeMs: number
  readonly #most: number
  readonly #values = new Map<string, { readonly value: Value; readonly untilMs: number }>()

  constructor(lifetimeMs: number, most: number) {
    this.#lifetimeMs = lifetimeMs
    this.#most = most
  }

  add(value: Value): string {
    const id = random()
    this.#values.set(id, { value, untilMs: performance.now() + this.#lifetimeMs })
    const [oldest] = this.#values.keys()
    if (this.#values.size > this.#most && oldest !== undefined) this.#values.delete(oldest)
    return id
  }

  get(id: string): Value | undefined {
    const found = this.#values.get(id)
    if (found !== undefined && found.untilMs > performance.now()) return found.value
    this.#values.delete(id)
    return undefined
  }

  take(id: string): Value | undefined {
    const value = this.get(id)
    this.#values.delete(id)
    return value
  }
}

/** @throws UsageError if a setting is missing, or if the file of the secret cannot be read */
export async function oidcSignIn(settings: OidcSettings, hasEnded: HasEnded): Promise<SignIn> {
  const { consoleOidcIssuer: issuer, consoleOidcClient: clientId } = settings
  if (issuer === undefined || clientId === undefined) {
    throw new UsageError(
      '--console-sign-in oidc needs --console-oidc-issuer and --console-oidc-client',
    )
  }
  const loaded = await import('../../../gateway/sign-in/provider.ts')
  const config: ProviderConfig = {
    issuer,
    clientId,
    tokenEndpointAuth: 'ClientSecretBasic',
    scopes: settings.consoleOidcScopes,
    resources: [],
    authorizationParameters: {},
    acrValues: [],
  }
  const { ProviderError } = loaded
  const unavailable = (message: string) => new ProviderError('unavailable', message)
  const provider = new loaded.Provider(config, sender(unavailable), secretIn(settings))
  return new OidcSignIn(settings, provider, hasEnded)
}

function secretIn({ consoleOidcSecretFile: path }: OidcSettings): string | undefined {
  if (path === undefined) return undefined
  try {
    const secret = readFileSync(path, 'utf8').trim()
    if (secret !== '') return secret
  } catch (error) {
    throw new UsageError(`--console-oidc-secret-file: ${(error as Error).message}`)
  }
  throw new UsageError(`--console-oidc-secret-file: ${path} is empty`)
}

/** Sends requests to the provider with the client of this process. */
function sender(unavailable: (message: string) => Error): SendRequest {
  return async (url, { method, headers, body }) => {
    const { host: _, ...sent } = headers as Readonly<Record<string, string>>
    try {
      const response = await fetch(url, {
        method,
        headers: sent,
        // A redirect could lead the secret to another server.
        redirect: 'error',
        signal: AbortSignal.timeout(requestMs),
        ...(body !== undefined && body !== null && { body: String(body) }),
      })
      const { status, headers: answered } = response
      return new Response(await limited(response), { status, headers: answered })
    } catch (error) {
      const { message, cause } = error as Error
      const why = cause instanceof Error ? cause.message : message
      throw unavailable(`the provider cannot be reached: ${why}`)
    }
  }
}

async function limited({ body }: Response): Promise<Uint8Array<ArrayBuffer> | null> {
  if (body === null) return null
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    bytes += piece.length
    if (bytes > maxBytes) throw new Error(`the response has more than ${maxBytes} bytes`)
    pieces.push(piece)
  }
  return new Uint8Array(Buffer.concat(pieces))
}

interface Session {
  readonly person: Person
  /** Digests under which the session can be ended. */
  readonly ids: readonly string[]
  /** When the ID token was issued, in seconds by the clock of the provider. */
  readonly issuedAt: number
}

class OidcSignIn implements SignIn {
  readonly method = 'oidc'
  readonly #settings: OidcSettings
  readonly #provider: Provider
  readonly #pending = new Expiring<ExpectedAnswer>(signInMs, maxPending)
  readonly #hasEnded: HasEnded
  readonly #sessions = new Expiring<Session>(sessionMs, maxSessions)
  readonly pages: NonNullable<SignIn['pages']> = {
    '/sign-in': (origin) => this.#begin(origin),
    '/signed-in': (origin, answer, cookies) => this.#finish(origin, answer, cookies),
  }

  constructor(settings: OidcSettings, provider: Provider, hasEnded: HasEnded) {
    this.#settings = settings
    this.#provider = provider
    this.#hasEnded = hasEnded
  }

  async review(token: string): Promise<Person | undefined> {
    const session = this.#sessions.get(token)
    if (session === undefined) return undefined
    if (!this.#hasEnded(session.ids, session.issuedAt)) return session.person
    this.#sessions.take(token)
    return undefined
  }

  end(token: string): void {
    this.#sessions.take(token)
  }

  hint(role: Role): string {
    const { consoleOidcClaim: claim, consoleReaders, consoleOperators } = this.#settings
    const values =
      role === 'read' ? [...consoleReaders, ...consoleOperators] : [...consoleOperators]
    return `The claim ${claim} of the ID token must have ${values.join(' or ')}.`
  }

  async #begin(origin: string): Promise<SignInStep> {
    const expected = {
      state: random(),
      nonce: random(),
      verifier: random(),
      redirectURI: `${origin}/signed-in`,
    }
    try {
      const location = await this.#provider.authorizationURL(expected)
      const id = this.#pending.add(expected)
      return { location, cookie: cookieText(origin, id, signInMs) }
    } catch (error) {
      return { status: 503, problem: `Sign-in is not possible now: ${(error as Error).message}` }
    }
  }

  async #finish(origin: string, answer: URLSearchParams, cookies: string): Promise<SignInStep> {
    const name = `${cookieName(origin)}=`
    const own = cookies.split(';').find((one) => one.trim().startsWith(name))
    const expected = own && this.#pending.take(own.trim().slice(name.length))
    if (!expected || expected.redirectURI !== `${origin}/signed-in`) {
      return {
        status: 400,
        problem:
          'This sign-in was not begun in this browser, or too long ago. Open the console again.',
      }
    }
    try {
      const tokens = await this.#provider.redeem(answer, expected)
      const key = this.#sessions.add(this.#sessionOf(tokens))
      return { location: `/#s=${key}`, cookie: cookieText(origin, '', 0) }
    } catch (error) {
      return { status: 403, problem: `The sign-in failed: ${(error as Error).message}` }
    }
  }

  #sessionOf(tokens: Tokens): Session {
    const { consoleOidcIssuer: issuer = '', consoleOidcClient: client } = this.#settings
    const { iss = issuer, sub = '', iat = Date.now() / 1_000 } = tokens.claims ?? {}
    const name = nameOfSubject(sub)
    const ids = [endedId(iss, undefined, name), endedId(iss, client, name)]
    return { person: this.#personOf(tokens), ids, issuedAt: iat }
  }

  #personOf({ claims }: Tokens): Person {
    const { consoleOidcClaim, consoleReaders, consoleOperators } = this.#settings
    const values = [claims?.[consoleOidcClaim]].flat().map(String)
    const has = (wanted: readonly string[]) => values.some((value) => wanted.includes(value))
    const roles: Role[] = has(consoleOperators)
      ? ['read', 'operate']
      : has(consoleReaders)
        ? ['read']
        : []
    return { name: nameIn(claims), roles }
  }
}

const noClaims: Readonly<Record<string, unknown>> & { readonly sub?: string } = {}

/** Names that people can change do not identify them, so the subject is always a part. */
function nameIn(claims: Tokens['claims']): string {
  const {
    sub = '',
    email,
    email_verified: isVerified,
    preferred_username: user,
  } = claims ?? noClaims
  const shown = [isVerified === false ? undefined : email, user].find(
    (one) => typeof one === 'string' && one !== '',
  )
  return shown === undefined || shown === sub ? sub : `${String(shown)} (${sub})`
}

/** Browsers send cookies to every port of a host, so the name has the port. */
const cookieName = (origin: string): string =>
  `sluice-console-sign-in-${new URL(origin).port || '80'}`

/** `Lax`: the provider leads the browser back from another site. */
const cookieText = (origin: string, value: string, lifetimeMs: number): string =>
  `${cookieName(origin)}=${value}; HttpOnly; SameSite=Lax; Path=/signed-in; Max-Age=${lifetimeMs / 1_000}`
