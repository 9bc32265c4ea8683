/** Sends the requests of one client to targets, and relays what precedes their responses. */
import { startCallSpan } from '../../../../proxy/request/tracing.ts'
import type { MessageStream } from '../exchange/message-stream.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import {
  ask,
  type OnAbandon,
  type OutgoingRequest,
  ownLimitMs,
  type ReceivedResponse,
  type Transport,
  withLimit,
} from '../target/transport.ts'
import { hasTimeout } from '../transport/target-request.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { type CallSpan, endSpan } from './call-span.ts'
import { ClientRelay } from './client-relay.ts'

export class TargetSender {
  readonly #upstreams: Upstreams
  readonly #messageStream: MessageStream
  readonly #onAbandon: OnAbandon
  /** Whether the client can resume its stream. */
  clientResumes = false

  constructor(upstreams: Upstreams, messageStream: MessageStream, onAbandon: OnAbandon) {
    this.#upstreams = upstreams
    this.#messageStream = messageStream
    this.#onAbandon = onAbandon
  }

  /** Rejects with SessionEnded, a GatewayError, or a TargetFailure. */
  send(entry: McpTargetEntry, request: OutgoingRequest): Promise<ReceivedResponse> {
    return this.#upstreams.use(entry, (transport) => {
      if (this.clientResumes) transport.clientResumes = true
      return this.#askOver(entry, transport, request)
    })
  }

  /**
   * Sends one of several requests whose responses are joined. If no timeout is configured, the gateway has one, so
   * that a silent target does not hold up the others.
   */
  sendJoined(entry: McpTargetEntry, request: OutgoingRequest): Promise<ReceivedResponse> {
    const { exchange } = this.#upstreams
    return this.sendWithin(entry, request, hasTimeout(exchange, entry) ? 0 : ownLimitMs)
  }

  /** Sends a request whose response the client cannot resume, and cancels it after `limitMs` if that is not 0. */
  sendWithin(
    entry: McpTargetEntry,
    request: OutgoingRequest,
    limitMs: number,
  ): Promise<ReceivedResponse> {
    const closes: (() => void)[] = []
    const onAbandon: OnAbandon = (close) => {
      closes.push(close)
      this.#onAbandon(close)
    }
    const sent = this.#upstreams.use(entry, (transport) =>
      this.#askOver(entry, transport, request, onAbandon),
    )
    return withLimit(sent, limitMs, () => {
      for (const close of closes) close()
    })
  }

  #askOver(
    entry: McpTargetEntry,
    transport: Transport,
    request: OutgoingRequest,
    onAbandon = this.#onAbandon,
  ): Promise<ReceivedResponse> {
    const span = this.#startSpan(entry)
    if (span !== undefined) transport.traceparent = span.header
    const relay = new ClientRelay(this.#upstreams, entry, this.#messageStream, request.id)
    const asked = ask(transport, request, relay, onAbandon)
    return span === undefined ? asked : endSpan(span, asked)
  }

  #startSpan({ target }: McpTargetEntry): CallSpan | undefined {
    const { context, details } = this.#upstreams.exchange
    if (context.trace === undefined) return undefined
    const { method = '', item } = details ?? {}
    const name =
      item === undefined ? `${method} ${target.name}` : `${method} ${target.name}_${item}`
    return startCallSpan(context, name, [
      ['mcp.method.name', method],
      ['mcp.target', target.name],
    ])
  }
}
