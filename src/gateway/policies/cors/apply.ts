/**
 * CORS as the Fetch standard (section 3.2) and the CORS filter of Gateway API define it.
 *
 *   no Origin                        passed on; only `Vary: Origin` is added to the response
 *   OPTIONS of an allowed origin     answered here, before any policy requires credentials
 *   preflight of another origin      answered here, without the headers that would allow it
 *   any other request                passed on; the response gets the headers, even if it is an error
 */
import { count, flag, type Infer, list, record, text } from '../../../ground/base/shape.ts'
import {
  type Exchange,
  next,
  type RespondVerdict,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import type { PolicyApply } from '../define.ts'
import { originTest } from './allowed-origins.ts'

/** The compiled form that proxies receive. Names of headers and methods are as the user wrote them. */
const shape = record({
  /**
   * `*`, or `scheme://host:port` in lower case with an explicit port, whose host may be `*` or begin
   * with `*.`.
   */
  origins: list(text),
  credentials: flag,
  methods: list(text),
  requestHeaders: list(text),
  responseHeaders: list(text),
  /** Value of Access-Control-Max-Age in seconds. */
  maxAge: count,
})
type CorsConfig = Infer<typeof shape>

type Pair = readonly [string, string]
type Request = Exchange['request']

const requestMethod = 'access-control-request-method'
const requestHeaders = 'access-control-request-headers'
const allowOrigin = 'access-control-allow-origin'
const allowCredentials = 'access-control-allow-credentials'
const expose = 'access-control-expose-headers'

/** Numbers the policies, so that those of both phases store the origin under different keys. */
let policies = 0

const apply: PolicyApply<CorsConfig> = {
  shape,
  bind(config) {
    const isAllowed = originTest(config.origins)
    const extension = `cors.${policies++}`
    return {
      onRequest(exchange): Verdict {
        const { request } = exchange
        const origin = request.headers.get('origin')
        if (origin === undefined) return next
        const allowed = isAllowed(origin)
        if (request.method === 'OPTIONS') {
          if (allowed) return preflight(allowedPairs(config, origin, request))
          if ((request.headers.get(requestMethod) ?? '') !== '') return refusedPreflight
        }
        exchange.extensions.set(extension, allowed ? origin : undefined)
        return next
      },
      onResponse(exchange) {
        if (exchange.response === undefined) return
        varyByOrigin(exchange.response.headers)
        if (exchange.extensions.has(extension)) {
          decide(config, exchange.extensions.get(extension), exchange.response.headers)
        }
      },
    }
  },
}

export default apply

type Fields = NonNullable<Exchange['response']>['headers']

/** Adds Vary, so that caches do not serve the response for one origin to another. */
function varyByOrigin(headers: Fields): void {
  const known = headers.getAll('vary').join(',').toLowerCase()
  if (!/(?:^|,)\s*(?:origin|\*)\s*(?:,|$)/.test(known)) headers.add('vary', 'Origin')
}

/** Replaces CORS headers of the upstream: only the policy decides which origins are allowed. */
function decide(config: CorsConfig, origin: unknown, headers: Fields): void {
  const [wildcard] = config.responseHeaders
  // Browsers do not treat `*` as a wildcard for requests with credentials, so the names are listed.
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

/** Names that scripts can always read or never read, so they are not listed. */
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

const refusedPreflight: RespondVerdict = { ...preflight([]), detail: 'Origin is not allowed' }

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

/** Replaces `*` by the requested names, since `*` is not a wildcard for requests with credentials. */
function listOrEcho(list: readonly string[], asked: string, credentials: boolean): string {
  if (list[0] !== '*') return list.join(',')
  if (asked !== '') return asked
  return credentials ? '' : '*'
}
