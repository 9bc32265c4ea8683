import type { Exchange, HeaderFields } from '../../../ground/exchange/exchange.ts'
import type { AuthorizedCaller } from '../../../ground/exchange/learned.ts'

type Pair = readonly [name: string, value: string]

/** Header fields that name the user, such as `x-auth-request-user`. */
const identityName =
  /^(?:.*[-_])?(?:user|user[-_]?name|user[-_]?id|uid|sub|subject|principal|identity|email|login)$/
/** Header fields that carry credentials. */
const credentialName =
  /^(?:.*[-_])?(?:authorization|cookie|token|api[-_]?key|key|secret|credentials?|auth|assertion|jwt|password)$/
/** Header fields that differ between requests of the same caller. */
const volatileName =
  /^(?:accept.*|content-.*|mcp-.*|traceparent|tracestate|baggage|x-request-id|x-b3-.*|x-forwarded-.*|last-event-id|idempotency-key|.*(?:csrf|xsrf).*|sec-websocket-key|host|date|via|origin|referer|user-agent)$/

/** Identifies the caller by comparing a request before and after the call to the service. */
export class CallerReader {
  readonly #sent: ReadonlySet<string> | undefined
  readonly #before: readonly Pair[]
  readonly #query: string

  /** `sent` are the lower-case names of the fields that the service receives; all fields if omitted. */
  constructor({ request }: Exchange, sent: ReadonlySet<string> | undefined) {
    this.#sent = sent
    this.#before = fieldsOf(request.headers)
    this.#query = ownQuery(request.query)
  }

  /** Returns the caller of an allowed request, combined with the caller that earlier services found. */
  read({ request }: Exchange, known: AuthorizedCaller | undefined): AuthorizedCaller {
    const before = new Set(this.#before.map(([name, value]) => `${name}:${value}`))
    const identity = fieldsOf(request.headers).filter(
      ([name, value]) => identityName.test(name) && !before.has(`${name}:${value}`),
    )
    const credentials = this.#before.filter(([name]) => this.#isCredential(name))
    if (this.#query !== '') credentials.push([':query', this.#query])
    return {
      identity: [...(known?.identity ?? []), ...identity].sort(byName),
      credentials: [...(known?.credentials ?? []), ...credentials].sort(byName),
    }
  }

  #isCredential(name: string): boolean {
    if (volatileName.test(name)) return false
    // The service may base its decision on any field that it receives.
    if (this.#sent !== undefined) return this.#sent.has(name)
    return credentialName.test(name) || identityName.test(name)
  }
}

/** The query, which may contain a key, without the session id of the older MCP transport. */
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
