/**
 * CORS as the Fetch standard has it (section 3.2), in the shape of the Gateway API's filter.
 *
 *   no Origin                        passes; the response only says that it depends on Origin
 *   OPTIONS of an allowed origin     answered here, before any credential is asked for
 *   preflight of another origin      answered here, without the headers that would allow it
 *   anything else                    passes; the response gets the headers, errors included
 */
import { count, flag, list, record, type Shape, text } from '../../base/shape.ts'
import { type Exchange, next, type RespondVerdict, type Verdict } from '../../exchange/exchange.ts'
import type { PolicyApply } from '../define.ts'
import { originTest } from './allowed-origins.ts'

/** Version 1. Lists are as the user wrote them, names of headers and methods included. */
export interface CorsConfig {
  /**
   * `*`; or `scheme://host:port`, lower case, with the port always written, whose host may be `*`
   * or begin with `*.`.
   */
  readonly origins: readonly string[]
  readonly credentials: boolean
  readonly methods: readonly string[]
  readonly requestHeaders: readonly string[]
  readonly responseHeaders: readonly string[]
  /** Seconds. */
  readonly maxAge: number
}

const shape: Shape<CorsConfig> = record({
  origins: list(text),
  credentials: flag,
  methods: list(text),
  requestHeaders: list(text),
  responseHeaders: list(text),
  maxAge: count,
})

type Pair = readonly [string, string]
type Request = Exchange['request']

const requestMethod = 'access-control-request-method'
const requestHeaders = 'access-control-request-headers'
const allowOrigin = 'access-control-allow-origin'
const allowCredentials = 'access-control-allow-credentials'
const expose = 'access-control-expose-headers'

/** Each policy notes the origin under a key of its own: two phases may judge it differently. */
let policies = 0

const apply: PolicyApply<CorsConfig> = {
  shape,
  bind(config) {
    const isAllowed = originTest(config.origins)
    const fact = `cors.${policies++}`
    return {
      onRequest(exchange): Verdict {
        const { request } = exchange
        const origin = request.headers.get('origin')
        if (origin === undefined) return next
        const allowed = isAllowed(origin)
        if (request.method === 'OPTIONS') {
          if (allowed) return preflight(allowedPairs(config, origin, request))
          if ((request.headers.get(requestMethod) ?? '') !== '') return preflight([])
        }
        exchange.facts.set(fact, allowed ? origin : undefined)
        return next
      },
      onResponse(exchange) {
        if (exchange.response === undefined) return
        varyByOrigin(exchange.response.headers)
        if (exchange.facts.has(fact)) {
          decide(config, exchange.facts.get(fact), exchange.response.headers)
        }
      },
    }
  },
}

export default apply

type Fields = NonNullable<Exchange['response']>['headers']

/** A cache must not give the answer for one origin to another. */
function varyByOrigin(headers: Fields): void {
  const known = headers.getAll('vary').join(',').toLowerCase()
  if (!/(?:^|,)\s*(?:origin|\*)\s*(?:,|$)/.test(known)) headers.add('vary', 'Origin')
}

/** The policy decides, not the upstream: what that says about origins is replaced. */
function decide(config: CorsConfig, origin: unknown, headers: Fields): void {
  const [wildcard] = config.responseHeaders
  // Credentialed requests take `*` literally, so the names are listed.
  const names =
    wildcard === '*' && config.credentials ? namesOf(headers) : config.responseHeaders.join(',')
  headers.remove(allowOrigin)
  headers.remove(allowCredentials)
  headers.remove(expose)
  if (typeof origin !== 'string') return
  headers.set(allowOrigin, origin)
  if (config.credentials) headers.set(allowCredentials, 'true')
  if (names !== '') headers.set(expose, names)
}

/** Names that a script may not read by default, without those that it may never read. */
const neverListed = new Set(['set-cookie', 'vary', allowOrigin, allowCredentials, expose])

function namesOf(headers: Fields): string {
  const names = new Set([...headers.entries()].map(([name]) => name.toLowerCase()))
  return [...names].filter((name) => !neverListed.has(name)).join(',')
}

const variesBy: Pair = [
  'vary',
  'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
]

function preflight(pairs: readonly Pair[]): RespondVerdict {
  return { kind: 'respond', status: 200, headers: [...pairs, variesBy], reason: 'DirectResponse' }
}

function allowedPairs(config: CorsConfig, origin: string, { headers }: Request): Pair[] {
  const { credentials, methods, responseHeaders, maxAge } = config
  const pairs: Pair[] = [[allowOrigin, origin]]
  const put = (name: string, value: string) => {
    if (value !== '') pairs.push([name, value])
  }
  put(
    'access-control-allow-methods',
    listOrEcho(methods, headers.get(requestMethod) ?? '', credentials),
  )
  put(
    'access-control-allow-headers',
    listOrEcho(config.requestHeaders, headers.getAll(requestHeaders).join(','), credentials),
  )
  put('access-control-max-age', `${maxAge}`)
  if (credentials) put(allowCredentials, 'true')
  if (!(credentials && responseHeaders[0] === '*')) put(expose, responseHeaders.join(','))
  return pairs
}

/** `*` stands for what was asked; for `*` itself only where no credentials are allowed. */
function listOrEcho(list: readonly string[], asked: string, credentials: boolean): string {
  if (list[0] !== '*') return list.join(',')
  if (asked !== '') return asked
  return credentials ? '' : '*'
}
