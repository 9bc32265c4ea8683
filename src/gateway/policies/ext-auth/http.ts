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
} from '../../../ground/exchange/exchange.ts'
import { FieldPairs, MemoryBody } from '../../../ground/exchange/memory-message.ts'
import { isFieldValue } from '../../../ground/model/header-changes.ts'
import { Expression, toBytes, toFieldValue } from '../../variables/index.ts'
import { forResponse } from './authorization.ts'
import {
  type Authorizer,
  failed,
  type Judgement,
  partialBodyName,
  type SentBody,
  ServiceFailure,
  timeoutMs,
} from './authorizer.ts'
import type { ExtAuthConfig, HttpAuthorization } from './config.ts'
import { bindAll, evaluateAll, type Named } from './expressions.ts'

type Pair = readonly [name: string, value: string]

/** Authorization over HTTP: the request is allowed if and only if the service responds with 200. */
export class HttpAuthorizer implements Authorizer<HttpCalloutResponse> {
  readonly request: boolean
  readonly response = false
  readonly #config: ExtAuthConfig
  readonly #callouts: Callouts
  readonly #http: HttpAuthorization
  readonly #path: Expression | undefined
  readonly #redirect: Expression | undefined
  readonly #body: Expression | undefined
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
    this.#body = http.body === undefined ? undefined : new Expression(http.body)
    this.#added = bindAll(http.addRequestHeaders)
    this.#metadata = bindAll(http.responseMetadata)
    // Only the gateway may say whether the body is whole.
    const named = http.allowedRequestHeaders.filter((name) => name !== partialBodyName)
    this.#sent = new Set(['authorization', ...named])
    this.#sentWithBody = new Set([...this.#sent, 'content-encoding'])
    const all = [...this.#added, ...this.#metadata].map(({ expression }) => expression)
    this.request = [this.#path, this.#redirect, this.#body, ...all].some(
      (one) => one?.request === true,
    )
  }

  async ask(
    exchange: Exchange,
    sent: SentBody | undefined,
  ): Promise<HttpCalloutResponse | RespondVerdict | ServiceFailure> {
    const path = this.#pathFor(exchange)
    if (path === undefined) return failed('the path expression has no usable value')
    const own = this.#body && toBytes(this.#body.evaluate(exchange))
    if (this.#body !== undefined && own === undefined) {
      return failed('the body expression has no usable value')
    }
    const body = own ?? sent?.bytes
    try {
      return await this.#callouts.http({
        target: this.#config.target,
        method: exchange.request.method,
        path,
        headers: this.#headersFor(exchange, own === undefined ? sent : undefined),
        ...(body !== undefined && body.length > 0 && { body }),
        exchange,
        subtype: 'ExtAuthz',
        timeoutMs,
        maxResponseBytes: exchange.bufferLimit,
      })
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return new ServiceFailure(`the service failed: ${error.message}`)
    }
  }

  judge(exchange: Exchange, response: HttpCalloutResponse): Judgement | ServiceFailure {
    return response.status === 200
      ? this.#allow(exchange, response)
      : this.#refuse(exchange, response)
  }

  removeServiceHeaders({ request: { headers } }: Exchange): void {
    const { allowedResponseHeaders: allowed } = this.#http
    if (allowed === 'all') return
    for (const name of allowed) if (!this.#sent.has(name)) headers.remove(name)
  }

  withAnswer(exchange: Exchange, response: HttpCalloutResponse): Exchange {
    return new AuthResponseExchange(exchange, response, new FieldPairs(response.headers))
  }

  sizeOf({ headers, body }: HttpCalloutResponse): number {
    return headers.reduce((sum, [name, value]) => sum + name.length + value.length, body.length)
  }

  #pathFor(exchange: Exchange): string | undefined {
    if (this.#path === undefined) {
      return (this.#http.pathPrefix ?? '') + pathAndQuery(exchange.request)
    }
    const path = toFieldValue(this.#path.evaluate(exchange))
    return path !== undefined && /^\/[\x21-\x7e\x80-\xff]*$/.test(path) ? path : undefined
  }

  #headersFor(exchange: Exchange, body: SentBody | undefined): Pair[] {
    const { headers, authority } = exchange.request
    const pairs: Pair[] = []
    for (const name of body === undefined ? this.#sent : this.#sentWithBody) {
      const values = name === 'host' ? [withoutRootDot(authority)] : headers.getAll(name)
      for (const value of values) pairs.push([name, value])
    }
    if (body !== undefined) pairs.push([partialBodyName, `${body.isPartial}`])
    for (const { name, expression } of this.#added) {
      const value = toFieldValue(expression.evaluate(exchange))
      const key = name.toLowerCase()
      // A header that the policy sets replaces the client's header of the same name.
      for (let at = pairs.length - 1; at >= 0; at--) if (pairs[at]?.[0] === key) pairs.splice(at, 1)
      if (value !== undefined && isFieldValue(value)) pairs.push([key, value])
    }
    return pairs
  }

  #allow(exchange: Exchange, response: HttpCalloutResponse): Judgement {
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
    const shown = this.#http.allowedClientHeadersOnSuccess ?? []
    const added = shown.flatMap((name) =>
      fields.getAll(name).map((value, at) => ({
        name,
        value,
        action: at === 0 ? ('overwrite' as const) : ('append' as const),
      })),
    )
    return { verdict: next, forResponse: forResponse(added) }
  }

  #refuse(exchange: Exchange, response: HttpCalloutResponse): Judgement | ServiceFailure {
    const { status, body } = response
    const detail = `the service answered ${status}`
    if (this.#redirect !== undefined) {
      const result = this.#redirect.evaluate(exchange)
      const location = isCelError(result) ? undefined : toFieldValue(result)
      if (location === undefined || location === '' || !isFieldValue(location)) {
        return { verdict: failed(`${detail}, and the redirect expression has no usable value`) }
      }
      const headers = [['location', location]] as const
      return { verdict: { kind: 'respond', status: 302, headers, reason: 'ExtAuth', detail } }
    }
    // A refusal must not look like a success, or like a backend failure that clients retry.
    if (status >= 500) return new ServiceFailure(detail)
    if (status < 300) return { verdict: failed(detail) }
    const headers = this.#forClient(endToEnd(response.headers))
    return { verdict: { kind: 'respond', status, headers, body, reason: 'ExtAuth', detail } }
  }

  #forClient(headers: readonly Pair[]): readonly Pair[] {
    const { allowedClientHeaders: allowed } = this.#http
    if (allowed === undefined) return headers
    return headers.filter(([name]) => {
      const key = name.toLowerCase()
      return allowed.includes(key) || alwaysForClients.has(key)
    })
  }
}

/** Headers that clients need to read or follow a refusal, so they always get them. */
const alwaysForClients = new Set([
  'content-encoding',
  'content-type',
  'location',
  'www-authenticate',
])

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
