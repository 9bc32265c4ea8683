/** Session persistence: clients that send the tokens they have got, and where their requests must arrive then. */
import type { SessionPersistence } from '../../src/ground/model/resources.ts'
import type { Random } from '../virtual-time/random.ts'
import type { SimulatedRoute } from './configuration.ts'
import type { Exchange } from './exchange.ts'
import { type Field, type Message, valuesOf } from './http1-reader.ts'

/** A token that a client has got for a route. */
interface Token {
  readonly text: string
  /** The upstream that has responded with it. */
  readonly upstream: string
  /** When the session began: no later than this, and not before the request of that response. */
  readonly at: number
  readonly notBefore: number
}

const name = 'sluice-session'

export function randomSession(random: Random, chance: number): SessionPersistence | undefined {
  if (!random.chance(chance)) return undefined
  const carrier = random.pick(['Cookie', 'Cookie', 'Header'] as const)
  const absoluteTimeoutMs = random.pick([undefined, undefined, 300, 2_000])
  const isPermanent = absoluteTimeoutMs !== undefined && random.chance(0.5)
  return { carrier, name, isPermanent, ...(absoluteTimeoutMs && { absoluteTimeoutMs }) }
}

/** The tokens of one client by route. */
export class ClientSessions {
  readonly #tokens = new Map<string, Token>()

  /** Returns the field with which a request continues the session of its client. */
  fieldFor(exchange: Exchange): Field | undefined {
    const { session } = exchange
    const token = this.#tokens.get(exchange.route)
    if (session === undefined || token === undefined) return undefined
    session.sent = token
    if (session.settings.carrier === 'Header') return [name, token.text]
    return ['Cookie', `other=1; ${name}=${token.text}`]
  }

  /** Called with each final response. */
  received(exchange: Exchange, message: Message, now: number): void {
    const { session, arrivals, begunAt = 0 } = exchange
    const text = session && tokenIn(message, session.settings)
    const upstream = arrivals.at(-1)?.upstream
    if (session === undefined || text === undefined) return
    session.got = text
    if (upstream === undefined) return
    this.#tokens.set(exchange.route, { text, upstream, at: now, notBefore: begunAt })
  }
}

/** The session of one exchange. */
export interface ExchangeSession {
  readonly settings: SessionPersistence
  sent: Token | undefined
  got: string | undefined
}

function tokenIn(message: Message, { carrier }: SessionPersistence): string | undefined {
  if (carrier === 'Header') return valuesOf(message, name)[0]
  for (const cookie of valuesOf(message, 'set-cookie')) {
    const [, token] = new RegExp(`^${name}=([^;]+)`).exec(cookie) ?? []
    if (token !== undefined) return token
  }
  return undefined
}

/** Failures in a row after which the gateway leaves an endpoint out for a while. */
const failuresOfEjected = 5

type Say = (invariant: 'isolation' | 'truth', text: string) => void

/**
 * Checks the exchanges of one route: each token reaches one client only, and a request with a token arrives at the
 * endpoint that it names. `hasMoved`: whether an endpoint of the route may have gone.
 */
export function checkSessions(
  route: SimulatedRoute,
  exchanges: readonly Exchange[],
  hasMoved: boolean,
  say: Say,
): void {
  const owners = new Map<string, string>()
  const failures = failuresByUpstream(exchanges)
  for (const exchange of exchanges) {
    const { session, tag, arrivals } = exchange
    if (session?.got !== undefined) {
      const owner = owners.get(session.got)
      owners.set(session.got, tag)
      if (owner !== undefined) say('isolation', `${tag} gets the session of ${owner}`)
    }
    const sent = session?.sent
    const [first] = arrivals
    if (session === undefined || sent === undefined || first === undefined) continue
    const { absoluteTimeoutMs } = session.settings
    const until = absoluteTimeoutMs === undefined ? Number.POSITIVE_INFINITY : absoluteTimeoutMs
    if ((exchange.begunAt ?? 0) >= sent.at + until) {
      const isFromUpstream = exchange.responses.some(({ fields }) =>
        fields.some(([field, value]) => field.toLowerCase() === 'x-tag' && value === tag),
      )
      if (isFromUpstream && session.got === undefined)
        say('truth', `${tag} continues an old session`)
      continue
    }
    const mayBeEjected = (failures.get(sent.upstream) ?? 0) >= failuresOfEjected
    const mayBeOver = first.at >= sent.notBefore + until
    if (hasMoved || mayBeEjected || mayBeOver || route.retries > 0) continue
    if (first.upstream !== sent.upstream) {
      say('truth', `${tag} of a session with ${sent.upstream} reaches ${first.upstream}`)
    }
  }
}

function failuresByUpstream(exchanges: readonly Exchange[]): ReadonlyMap<string, number> {
  const failures = new Map<string, number>()
  for (const { upstream, plan } of exchanges.flatMap(({ arrivals }) => arrivals)) {
    // A lost connection leaves an endpoint out at once.
    const count = plan.fault !== 'none' ? failuresOfEjected : plan.status >= 500 ? 1 : 0
    failures.set(upstream, (failures.get(upstream) ?? 0) + count)
  }
  return failures
}
