/** Whom the service has let pass, by the fields of the request before and after it was asked. */
import type { Exchange, HeaderFields } from '../../exchange/exchange.ts'
import type { AuthorizedCaller } from '../../exchange/learned.ts'

type Pair = readonly [name: string, value: string]

/** Fields in which services state the user that they found, such as `x-auth-request-user`. */
const identityName =
  /^(?:.*[-_])?(?:user|user[-_]?name|user[-_]?id|uid|sub|subject|principal|identity|email|login)$/
/** Fields that carry credentials, or a name that a proxy in front vouches for. */
const credentialName =
  /^(?:.*[-_])?(?:authorization|cookie|token|api[-_]?key|key|secret|credentials?|auth|assertion|jwt|password)$/
/** They change from request to request, whoever sends it. */
const changing =
  /^(?:accept.*|content-.*|mcp-.*|traceparent|tracestate|baggage|x-request-id|x-b3-.*|x-forwarded-.*|last-event-id|idempotency-key|.*(?:csrf|xsrf).*|sec-websocket-key|host|date|via|origin|referer|user-agent)$/

/** `sent`: names of the fields that the service gets, in lower case; `undefined` for all of them. */
export class CallerReader {
  readonly #sent: ReadonlySet<string> | undefined
  readonly #before: readonly Pair[]
  readonly #query: string

  /** Reads the request as the client sent it. */
  constructor({ request }: Exchange, sent: ReadonlySet<string> | undefined) {
    this.#sent = sent
    this.#before = fieldsOf(request.headers)
    this.#query = ownQuery(request.query)
  }

  /** The caller, after the service has let the request pass. `known`: by a service that was asked before. */
  read({ request }: Exchange, known: AuthorizedCaller | undefined): AuthorizedCaller {
    const before = new Set(this.#before.map(([name, value]) => `${name}:${value}`))
    const stated = fieldsOf(request.headers).filter(
      ([name, value]) => identityName.test(name) && !before.has(`${name}:${value}`),
    )
    const judged = this.#before.filter(([name]) => this.#isCredential(name))
    if (this.#query !== '') judged.push([':query', this.#query])
    return {
      identity: [...(known?.identity ?? []), ...stated].sort(byName),
      credentials: [...(known?.credentials ?? []), ...judged].sort(byName),
    }
  }

  #isCredential(name: string): boolean {
    if (changing.test(name)) return false
    // Whoever lists a field for the service lets it judge by that.
    if (this.#sent !== undefined) return this.#sent.has(name)
    return credentialName.test(name) || identityName.test(name)
  }
}

/** The query, in which some clients carry a key, without the session of the older MCP transport. */
function ownQuery(query = ''): string {
  const parts = query.split('&').filter((part) => !part.startsWith('sessionId='))
  return parts.sort().join('&')
}

const fieldsOf = (headers: HeaderFields): readonly Pair[] =>
  Array.from(headers.entries(), ([name, value]) => [name.toLowerCase(), value] as const)

function byName([a, first]: Pair, [b, second]: Pair): number {
  if (a !== b) return a < b ? -1 : 1
  return first < second ? -1 : 1
}
