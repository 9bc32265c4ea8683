/**
 * Claim: the session check of a signed-in browser costs at most 3 µs, also with cookies of 8.3 kB: the step
 * finds the session in memory by comparing the bytes of the whole field, and removes its cookies.
 */
import { randomBytes } from 'node:crypto'
import type { OidcConfig } from '../src/gateway/sign-in/config.ts'
import { setPieces } from '../src/gateway/sign-in/cookies.ts'
import { Keyring } from '../src/gateway/sign-in/keyring.ts'
import { Provider } from '../src/gateway/sign-in/provider.ts'
import { renewalsOf } from '../src/gateway/sign-in/renewals.ts'
import { sealSession } from '../src/gateway/sign-in/session.ts'
import { SessionGuard } from '../src/gateway/sign-in/session-guard.ts'
import { SignIn } from '../src/gateway/sign-in/sign-in.ts'
import { SignOut } from '../src/gateway/sign-in/sign-out.ts'
import { signedOutOf } from '../src/gateway/sign-in/signed-out.ts'
import type { Exchange } from '../src/ground/exchange/exchange.ts'
import { Extensions } from '../src/ground/exchange/extensions.ts'
import { Learned } from '../src/ground/exchange/learned.ts'
import { FieldPairs } from '../src/ground/exchange/memory-message.ts'
import { type BenchContext, cpuNanoseconds, type Row } from './harness.ts'

const issuer = 'https://idp.example.com'
const names = {
  session: '__Host-sluice-s-0',
  transaction: '__Host-sluice-t-0-',
  count: 'n',
  context: 'bench',
}
const config: OidcConfig = {
  issuer,
  clientId: 'app',
  tokenEndpointAuth: 'ClientSecretBasic',
  scopes: ['openid'],
  resources: [],
  authorizationParameters: {},
  acrValues: [],
  redirectURI: '/oauth2/callback',
  logoutPath: '/logout',
  signInMs: 600_000,
  sessionMs: 3_600_000,
  defaultTokenMs: 3_600_000,
  refreshToken: true,
  keys: [],
  passThroughAuthHeader: false,
  forwardAccessToken: false,
}

/** A request whose head is in memory as bytes, as the engine has it. */
class HeadBytes extends FieldPairs {
  readonly #cookie: Buffer

  constructor(cookie: Buffer) {
    super([['host', 'app.example.com']])
    this.#cookie = cookie
  }

  bytesOf(name: string): Buffer | undefined {
    return name === 'cookie' ? this.#cookie : undefined
  }
}

/** The Cookie field of a session whose tokens have so many bytes that do not compress. */
function fieldOf(keyring: Keyring, size: number): Buffer {
  const now = Date.now()
  const session = {
    id: 'one',
    startedAt: now,
    issuedAt: now / 1_000,
    renewedAt: now,
    expiresAt: now + 3_600_000,
    claims: { iss: issuer, sub: 'ann' },
    accessToken: randomBytes(size).toString('base64url'),
  }
  const value = sealSession(session, keyring, names.context)
  const set = setPieces(names.session, value, 3_600, { own: new Map(), others: '' })
  return Buffer.from(['theme=dark', ...set.map((one) => one.split(';', 1)[0])].join('; '))
}

const unused = { take: () => true, isTableFull: false } as unknown as Parameters<
  typeof renewalsOf
>[1]

export default function signIn({ rounds, quick }: BenchContext): readonly Row[] {
  const keyring = new Keyring([Buffer.alloc(32, 1)])
  const provider = new Provider(config, () => Promise.reject(new Error('not reached')), undefined)
  const signedOut = signedOutOf(issuer, 'app')
  const guard = new SessionGuard({
    config,
    names,
    provider,
    keyring: () => keyring,
    signIn: new SignIn(config, provider, names),
    signOut: new SignOut(config, provider, names, signedOut),
    signedOut,
    renewals: renewalsOf(names.context, unused),
  })
  const checks = quick ? 20_000 : 200_000
  return [1_200, 6_000].map((size) => {
    const field = fieldOf(keyring, size)
    const learned = new Learned()
    const check = () => {
      const headers = new HeadBytes(field)
      const request = { method: 'GET', path: '/orders', headers }
      const exchange = { request, learned, extensions: new Extensions() } as unknown as Exchange
      return guard.onRequest(exchange)
    }
    check()
    if (learned.jwt?.sub !== 'ann') throw new Error('the session is not found')
    const own = Array.from({ length: rounds }, () => {
      const spent = cpuNanoseconds(() => {
        for (let count = 0; count < checks; count++) check()
      })
      return spent / checks / 1_000
    })
    const id = field.length > 4_096 ? 'sign-in.session.large' : 'sign-in.session'
    const note = `Cookie field of ${(field.length / 1_000).toFixed(1)} kB`
    return { id, unit: 'µs', own, bound: { atMost: 3 }, note }
  })
}
