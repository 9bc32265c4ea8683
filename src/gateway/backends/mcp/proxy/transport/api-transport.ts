/** Serves tools of an OpenAPI document: the gateway is the MCP server, and calls become requests to the API. */
import type { CallListener } from '../../../../../engines/http/contracts/calls.ts'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import type { HeaderFields } from '../../../../../ground/exchange/exchange.ts'
import { Attempt } from '../../../../proxy/request/request-context.ts'
import { now, type UpstreamEndpoint } from '../../../../proxy/upstream/endpoint.ts'
import { modernVersions } from '../../eras/versions.ts'
import { jsonValue, member, textOf } from '../../json/node.ts'
import { codes, errorText, resultText } from '../../json-rpc.ts'
import { type McpRequest, readRequest } from '../../message.ts'
import { metaKeys } from '../../meta-keys.ts'
import type { ApiRequest } from '../../openapi/request.ts'
import { failed } from '../../openapi/result.ts'
import { ArgumentProblem } from '../../openapi/serialize.ts'
import { acceptIdentity } from '../exchange/forwarded-headers.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { apiToolsOf } from '../target/api-tools.ts'
import { LateFlow } from '../target/late-flow.ts'
import { passResponse, type ResponseListener } from '../target/response-reader.ts'
import { TargetFailure, toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { type Flow, idleFlow, type OutgoingMessage, type Transport } from '../target/transport.ts'
import { type AnswerListener, PagedCall } from './paged-call.ts'
import { prepareRequest, type ReadyRequest } from './target-request.ts'

type ApiTools = NonNullable<ReturnType<typeof apiToolsOf>>

/** How long clients may keep the list, which changes with the configuration only. */
const listTtlMs = 60_000

export class ApiTransport implements Transport {
  readonly era = 'modern'
  endpoint: string | undefined
  traceparent: string | undefined
  readonly #exchange: McpExchange
  readonly #entry: McpTargetEntry
  readonly #tools: ApiTools

  constructor(exchange: McpExchange, entry: McpTargetEntry, tools: ApiTools) {
    this.#exchange = exchange
    this.#entry = entry
    this.#tools = tools
  }

  post({ text }: OutgoingMessage, listener: ResponseListener): Flow | Promise<Flow> {
    const request = readRequest(text)
    if (request === undefined) {
      listener.onEnd()
      return idleFlow
    }
    const { id, method } = request
    if (method === 'tools/call') return this.#call(request, listener)
    const result = this.#ownResult(method)
    passResponse(
      listener,
      result === undefined
        ? errorText(id, codes.methodNotFound, 'Method not found')
        : resultText(id, JSON.stringify({ resultType: 'complete', ...result })),
    )
    return idleFlow
  }

  #ownResult(method: string): object | undefined {
    const { title, version, tools } = this.#tools
    const hints = { ttlMs: listTtlMs, cacheScope: 'public' }
    if (method === 'tools/list') {
      return { tools: Array.from(tools.values(), ({ definition }) => definition), ...hints }
    }
    if (method !== 'server/discover') return undefined
    const _meta = { [metaKeys.serverInfo]: { name: title, version } }
    return { supportedVersions: modernVersions, capabilities: { tools: {} }, _meta, ...hints }
  }

  #call(request: McpRequest, listener: ResponseListener): Flow | Promise<Flow> {
    const { id, text, params } = request
    const name = textOf(text, member(params, 'name'))
    const tool = name === undefined ? undefined : this.#tools.tools.get(name)
    if (tool === undefined) {
      passResponse(listener, errorText(id, codes.invalidParams, `Unknown tool: ${name ?? ''}`))
      return idleFlow
    }
    const finish = (result: object) => {
      passResponse(listener, resultText(id, JSON.stringify({ resultType: 'complete', ...result })))
    }
    const args = member(params, 'arguments')
    const { maxPages, maxResultBytes: maxBytes } = this.#tools
    const call = new PagedCall({
      tool,
      maxPages,
      maxBytes,
      send: (asked, limit, answers) => this.#send(asked, limit, answers),
      finish,
      onFailure: (failure) => listener.onFailure(failure),
    })
    try {
      return call.begin(args && jsonValue(text, args))
    } catch (error) {
      if (!(error instanceof ArgumentProblem)) throw error
      finish(failed(`Invalid arguments: ${error.message}`))
      return idleFlow
    }
  }

  #send(asked: ApiRequest, maxBytes: number, listener: AnswerListener): Flow | Promise<Flow> {
    const { method, body } = asked
    const { target } = this.#entry
    const base = target.path === '' ? this.#tools.basePath : target.path.replace(/\/+$/, '')
    const headers: (readonly [string, string])[] = [
      acceptIdentity,
      ['accept', 'application/json, */*;q=0.5'],
      ...asked.headers,
    ]
    if (this.traceparent !== undefined) headers.push(['traceparent', this.traceparent])
    if (body !== undefined) headers.push(['content-type', body.type])
    const isSafe = method === 'GET' || method === 'HEAD'
    const onEndpoint = ({ address }: UpstreamEndpoint) => {
      this.endpoint = address.label
      this.#exchange.context.attempt = new Attempt(address)
    }
    const message = {
      method,
      // A request whose method expects a body states that it has none.
      body: body?.bytes ?? (isSafe || method === 'DELETE' ? undefined : ''),
      headers,
      path: `${base}${asked.path}`,
      isRepeatable: isSafe,
      onEndpoint,
    }
    const prepare = () => prepareRequest(this.#exchange, this.#entry, message)
    return new ApiCall(this.#exchange, prepare, maxBytes, listener).begin()
  }
}

/** One request to the API. Keeps no more of the response than the result may have. */
class ApiCall extends LateFlow implements CallListener {
  readonly #exchange: McpExchange
  readonly #prepare: () => ReadyRequest | Promise<ReadyRequest>
  readonly #maxBytes: number
  readonly #listener: AnswerListener
  readonly #pieces: Uint8Array[] = []
  #ready: ReadyRequest | undefined
  #startedAt = 0
  #kept = 0
  #length = 0
  #status = 0
  #type = ''
  #stated: number | undefined
  #link: string | undefined

  constructor(
    exchange: McpExchange,
    prepare: () => ReadyRequest | Promise<ReadyRequest>,
    maxBytes: number,
    listener: AnswerListener,
  ) {
    super()
    this.#exchange = exchange
    this.#prepare = prepare
    this.#maxBytes = maxBytes
    this.#listener = listener
  }

  /** Sends the request. Throws or rejects with a GatewayError. */
  begin(): this | Promise<this> {
    const ready = this.#prepare()
    return ready instanceof Promise ? ready.then((one) => this.#begin(one)) : this.#begin(ready)
  }

  #begin(ready: ReadyRequest): this {
    this.#ready = ready
    this.#startedAt = now()
    this.attach(this.#exchange.runtime.call(ready, this))
    return this
  }

  async #sendAgain(): Promise<void> {
    await this.begin()
  }

  #onSendFailure(thrown: unknown): void {
    const isKnown = thrown instanceof TargetFailure || thrown instanceof GatewayError
    const error = isKnown ? thrown : new GatewayError('bug', undefined, thrown)
    this.#listener.onFailure(toFailure(error))
  }

  onHead(status: number, headers: HeaderFields): void {
    const latencyMs = now() - this.#startedAt
    this.#ready?.endpoint.record(
      status < 500 ? { kind: 'answered', latencyMs } : { kind: 'failed', retryAfterMs: 0 },
      now,
    )
    if (this.#ready?.informSteps(status, headers) === true) {
      // A closed call does not report the rest of its response.
      this.flow?.close()
      if (!this.isOver) this.#sendAgain().catch((thrown) => this.#onSendFailure(thrown))
      return
    }
    this.#status = status
    this.#type = headers.get('content-type') ?? ''
    const links = headers.getAll('link')
    this.#link = links.length === 0 ? undefined : links.join(', ')
    const length = headers.get('content-length')
    this.#stated = length === undefined ? undefined : Number(length)
  }

  onBytes(bytes: Uint8Array): void {
    this.#length += bytes.length
    const room = this.#maxBytes - this.#kept
    if (room > 0) {
      const piece = bytes.subarray(0, room)
      this.#pieces.push(piece)
      this.#kept += piece.length
      return
    }
    // The rest is of no use. A response without a length is longer than what was read.
    this.flow?.close()
    this.#finish(Math.max(this.#stated ?? 0, this.#length))
  }

  onEnd(): void {
    this.#finish(this.#length)
  }

  #finish(length: number): void {
    const bytes = Buffer.concat(this.#pieces)
    const [status, type, link] = [this.#status, this.#type, this.#link]
    this.#listener.onAnswer({ status, type, bytes, length, link })
  }

  onFailure(error: GatewayError): void {
    if (error.code === 'connect_failed' || error.code === 'connect_timeout') {
      this.#ready?.endpoint.record({ kind: 'unreachable' }, now)
    }
    this.#listener.onFailure(toFailure(error))
  }
}
