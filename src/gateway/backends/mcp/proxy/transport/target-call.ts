/** A message that is sent to a target as a request of its own, and the response. */
import type { CallListener } from '../../../../../engines/http/contracts/calls.ts'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import { Attempt } from '../../../../proxy/request/request-context.ts'
import type { UpstreamEndpoint } from '../../../../proxy/upstream/endpoint.ts'
import { now } from '../../../../proxy/upstream/endpoint.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { LateFlow } from '../target/late-flow.ts'
import { type ResponseListener, ResponseReader } from '../target/response-reader.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { redirectedPaths, redirectPath } from './target-redirects.ts'
import { prepareRequest, type ReadyRequest, type TargetMessage } from './target-request.ts'

/** Maximum number of redirects of one message. */
const maxRedirects = 3

/** What is different in each message. */
type SentMessage = Pick<TargetMessage, 'method' | 'body' | 'headers' | 'isLong' | 'isRepeatable'>

interface MessageTransport {
  readonly exchange: McpExchange
  readonly entry: McpTargetEntry
  /** Label of the endpoint that has the session. */
  readonly pinned: string | undefined
  /** Path of messages, if not that of the target. */
  readonly path?: string | undefined
  /** Label of the endpoint of the last message. */
  endpoint: string | undefined
}

/** Records the outcome in the health of the endpoint, and follows redirects of the server to another path. */
export class TargetCall extends LateFlow implements CallListener, TargetMessage {
  readonly method: TargetMessage['method']
  readonly body: TargetMessage['body']
  readonly headers: TargetMessage['headers']
  readonly pinned: string | undefined
  readonly isLong: boolean | undefined
  readonly isRepeatable: boolean | undefined
  /** Undefined: the configured path. */
  path: string | undefined
  isReceived = false
  readonly #exchange: McpExchange
  readonly #entry: McpTargetEntry
  /** Gets the label of the endpoint. */
  readonly #transport: MessageTransport
  readonly #reader: ResponseReader
  #ready: ReadyRequest | undefined
  #startedAt = 0
  #redirects = 0

  constructor(
    transport: MessageTransport,
    { method, body, headers, isLong, isRepeatable }: SentMessage,
    listener: ResponseListener,
    ignoresBody = false,
  ) {
    super()
    this.method = method
    this.body = body
    this.headers = headers
    this.pinned = transport.pinned
    this.isLong = isLong
    this.isRepeatable = isRepeatable
    this.#exchange = transport.exchange
    this.#entry = transport.entry
    this.#transport = transport
    this.#reader = new ResponseReader(listener, ignoresBody)
    this.#reader.call = this
  }

  /** Sends the message. Throws or rejects with a GatewayError. */
  begin(): this | Promise<this> {
    const sending = this.#send(
      this.#paths.size > 0 ? this.#paths.get(this.#exchange.identity) : undefined,
    )
    return sending === undefined ? this : sending.then(() => this)
  }

  /** Paths to which the target has redirected clients. */
  get #paths() {
    return redirectedPaths.of(this.#entry)
  }

  #send(path: string | undefined): void | Promise<void> {
    this.path = path ?? this.#transport.path
    const ready = prepareRequest(this.#exchange, this.#entry, this)
    return ready instanceof Promise ? ready.then((one) => this.#begin(one)) : this.#begin(ready)
  }

  #begin(ready: ReadyRequest): void {
    this.#ready = ready
    this.#startedAt = now()
    this.attach(this.#exchange.runtime.call(ready, this))
  }

  onEndpoint({ address }: UpstreamEndpoint): void {
    this.#transport.endpoint = address.label
    this.#exchange.context.attempt = new Attempt(address)
  }

  onHead(...[status, headers]: Parameters<CallListener['onHead']>): void {
    const ready = this.#ready
    if (ready === undefined) return
    const latencyMs = now() - this.#startedAt
    const outcome =
      status < 500
        ? ({ kind: 'answered', latencyMs } as const)
        : ({ kind: 'failed', retryAfterMs: 0 } as const)
    ready.endpoint.record(outcome, now)
    if (ready.informSteps(status, headers)) {
      this.#repeat(this.path)
      return
    }
    if (status === 404) this.#paths.delete(this.#exchange.identity)
    const path = this.#redirects < maxRedirects ? redirectPath(status, headers, ready) : undefined
    if (path === undefined) {
      this.#reader.onHead(status, headers)
      return
    }
    this.#redirects += 1
    this.#paths.set(this.#exchange.identity, path)
    this.#repeat(path)
  }

  #repeat(path: string | undefined): void {
    // A closed call does not report the rest of its response.
    this.flow?.close()
    if (!this.isOver) this.#sendAgain(path).catch((thrown) => this.#onSendFailure(thrown))
  }

  async #sendAgain(path: string | undefined): Promise<void> {
    await this.#send(path)
  }

  #onSendFailure(thrown: unknown): void {
    const isKnown = thrown instanceof GatewayError
    this.#reader.onFailure(isKnown ? thrown : new GatewayError('bug', undefined, thrown))
  }

  onBytes(bytes: Uint8Array): void {
    this.#reader.onBytes(bytes)
  }

  onEnd(): void {
    this.isReceived = true
    this.#reader.onEnd()
  }

  onFailure(...[error]: Parameters<CallListener['onFailure']>): void {
    if (error.code === 'connect_failed' || error.code === 'connect_timeout') {
      this.#ready?.endpoint.record({ kind: 'unreachable' }, now)
    }
    this.#reader.onFailure(error)
  }
}
