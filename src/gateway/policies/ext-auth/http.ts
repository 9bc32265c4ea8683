import { isCelError } from '../../../engines/cel/index.ts'
import { withoutRootDot } from '../../../ground/base/root-dot.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import { FollowingExchange } from '../../../ground/exchange/derived.ts'
import {
  type Body,
  type Callouts,
  type Exchange,
  type HttpCalloutResponse,
  next,
  pathAndQuery,
  type RespondVerdict,
  type ResponseHead,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import { FieldPairs, MemoryBody } from '../../../ground/exchange/memory-message.ts'
import { isFieldValue } from '../../../ground/model/header-changes.ts'
import { type BodyNeeds, bufferBodies, Expression, toFieldValue } from '../../variables/index.ts'
import { type Authorizer, bodyFor, failed, timeoutMs } from './authorizer.ts'
import type { ExtAuthConfig, HttpAuthorization } from './config.ts'
import { bindAll, evaluateAll, type Named } from './expressions.ts'

type Pair = readonly [name: string, value: string]

/** Authorization over HTTP: the request is allowed if and only if the service responds with 200. */
export class HttpAuthorizer implements Authorizer, BodyNeeds {
  readonly request: boolean
  readonly response = false
  readonly #config: ExtAuthConfig
  readonly #callouts: Callouts
  readonly #http: HttpAuthorization
  readonly #path: Expression | undefined
  readonly #redirect: Expression | undefined
  readonly #added: Named
  readonly #metadata: Named
  /** Names of the client's headers that are sent to the service. */
  readonly #sent: ReadonlySet<string>
  /** The same with the body, which the service could not decode otherwise. */
  readonly #sentWithBody: ReadonlySet<string>

  constructor(config: ExtAuthConfig, http: HttpAuthorization, callouts: Callouts) {
    this.#config = config
    this.#callouts = callouts
    this.#http = http
    this.#path = http.path === undefined ? undefined : new Expression(http.path)
    this.#redirect = http.redirect === undefined ? undefined : new Expression(http.redirect)
    this.#added = bindAll(http.addRequestHeaders)
    this.#metadata = bindAll(http.responseMetadata)
    this.#sent = new Set(['authorization', ...http.allowedRequestHeaders])
    this.#sentWithBody = new Set([...this.#sent, 'content-encoding'])
    const all = [...this.#added, ...this.#metadata].map(({ expression }) => expression)
    this.request = [this.#path, this.#redirect, ...all].some((one) => one?.request === true)
  }

  async authorize(exchange: Exchange): Promise<Verdict> {
    const body = await bodyFor(exchange, this.#config.maxBodyBytes)
    if (body !== undefined && 'kind' in body) return body
    await bufferBodies(exchange, this)
    const path = this.#pathFor(exchange)
    if (path === undefined) return failed('the path expression has no usable value')
    let response: HttpCalloutResponse
    try {
      response = await this.#callouts.http({
        target: this.#config.target,
        method: exchange.request.method,
        path,
        headers: this.#headersFor(exchange, body !== undefined),
        ...(body !== undefined && body.length > 0 && { body }),
        exchange,
        subtype: 'ExtAuthz',
        timeoutMs,
        maxResponseBytes: exchange.bufferLimit,
      })
    } catch (error) {
      if (error instanceof GatewayError) return failed(`the service failed: ${error.message}`)
      throw error
    }
    return response.status === 200
      ? this.#allow(exchange, response)
      : this.#refuse(exchange, response)
  }

  #pathFor(exchange: Exchange): string | undefined {
    if (this.#path === undefined) {
      return (this.#http.pathPrefix ?? '') + pathAndQuery(exchange.request)
    }
    const path = toFieldValue(this.#path.evaluate(exchange))
    return path !== undefined && /^\/[\x21-\x7e\x80-\xff]*$/.test(path) ? path : undefined
  }

  #headersFor(exchange: Exchange, withBody: boolean): Pair[] {
    const { headers, authority } = exchange.request
    const pairs: Pair[] = []
    for (const name of withBody ? this.#sentWithBody : this.#sent) {
      const values = name === 'host' ? [withoutRootDot(authority)] : headers.getAll(name)
      for (const value of values) pairs.push([name, value])
    }
    if (withBody) pairs.push(['x-envoy-auth-partial-body', 'false'])
    for (const { name, expression } of this.#added) {
      const value = toFieldValue(expression.evaluate(exchange))
      const key = name.toLowerCase()
      // A header that the policy sets replaces the client's header of the same name.
      for (let at = pairs.length - 1; at >= 0; at--) if (pairs[at]?.[0] === key) pairs.splice(at, 1)
      if (value !== undefined && isFieldValue(value)) pairs.push([key, value])
    }
    return pairs
  }

  #allow(exchange: Exchange, response: HttpCalloutResponse): Verdict {
    const fields = new FieldPairs(response.headers)
    const { headers } = exchange.request
    const { allowedResponseHeaders: allowed } = this.#http
    for (const name of allowed === 'all' ? namesOf(response.headers) : allowed) {
      if (name === 'host') continue
      const values = fields.getAll(name)
      // Removes the client's value, since only the service may set this header.
      if (values.length > 0 || !this.#sent.has(name)) headers.remove(name)
      for (const value of values) headers.add(name, value)
    }
    if (this.#metadata.length > 0) {
      const made = evaluateAll(this.#metadata, new AuthResponseExchange(exchange, response, fields))
      exchange.learned.extauthz = { ...exchange.learned.extauthz, ...made }
    }
    return next
  }

  #refuse(exchange: Exchange, response: HttpCalloutResponse): RespondVerdict {
    const { status, body } = response
    const detail = `the service answered ${status}`
    if (this.#redirect !== undefined) {
      const result = this.#redirect.evaluate(exchange)
      const location = isCelError(result) ? undefined : toFieldValue(result)
      if (location === undefined || location === '' || !isFieldValue(location)) {
        return failed(`${detail}, and the redirect expression has no usable value`)
      }
      const headers = [['location', location]] as const
      return { kind: 'respond', status: 302, headers, reason: 'ExtAuth', detail }
    }
    // A refusal must not look like a success, or like a backend failure that clients retry.
    if (status < 300 || status >= 500) return failed(detail)
    const headers = endToEnd(response.headers)
    return { kind: 'respond', status, headers, body, reason: 'ExtAuth', detail }
  }
}

/** Headers that concern only the connection to the service (RFC 9110 7.6.1). */
const hopByHop = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Header names of the service's response, without those about its own content and connection. */
function namesOf(headers: readonly Pair[]): Set<string> {
  const names = endToEnd(headers).map(([name]) => name.toLowerCase())
  return new Set(names.filter((name) => !/^(content-.*|date|server)$/.test(name)))
}

function endToEnd(headers: readonly Pair[]): Pair[] {
  const named = new Set<string>()
  for (const [name, value] of headers) {
    if (name.toLowerCase() !== 'connection') continue
    for (const option of value.split(',')) named.add(option.trim().toLowerCase())
  }
  return headers.filter(([name]) => {
    const key = name.toLowerCase()
    return !hopByHop.has(key) && !named.has(key)
  })
}

/** The exchange with the service's response in place of its own, for expressions. */
class AuthResponseExchange extends FollowingExchange {
  readonly request = this.origin.request
  readonly requestBody = this.origin.requestBody
  readonly response: ResponseHead
  readonly responseBody: Body

  constructor(origin: Exchange, { status, body }: HttpCalloutResponse, headers: FieldPairs) {
    super(origin)
    this.response = { status, headers }
    this.responseBody = new MemoryBody(body)
  }
}
