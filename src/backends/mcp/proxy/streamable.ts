/** Streamable HTTP to a target: each message is a separate request. */
import type { CallListener } from '../../../engine/contracts/calls.ts'
import { GatewayError } from '../../../errors/index.ts'
import { now } from '../../../proxy/upstream/choose.ts'
import type { UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import { encodeName } from '../eras/headers.ts'
import type { Era } from '../methods.ts'
import type { TargetSession } from '../session-state.ts'
import { type AnswerListener, AnswerReader } from './answer-reader.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { learnedPath, MovingFlow } from './moved.ts'
import { prepareRequest, type ReadyRequest, type TargetMessage } from './target-request.ts'
import type { Flow, OutgoingMessage, Transport } from './transport.ts'

const bothTypes = 'application/json, text/event-stream'

/** The version and the session in the headers of messages to a target. */
interface TargetWire {
  readonly era: Era
  /** Not set for `initialize`, which agrees on a version. */
  readonly version?: string
  readonly session?: TargetSession
}

export const legacyWire = (session: TargetSession | undefined): TargetWire =>
  session === undefined ? { era: 'legacy' } : { era: 'legacy', version: session.version, session }

export const modernWire = (version: string): TargetWire => ({ era: 'modern', version })

export class StreamableTransport implements Transport {
  readonly #exchange: McpExchange
  readonly #entry: McpTargetEntry
  readonly #wire: TargetWire
  endpoint: string | undefined
  traceparent: string | undefined

  constructor(exchange: McpExchange, entry: McpTargetEntry, wire: TargetWire) {
    this.#exchange = exchange
    this.#entry = entry
    this.#wire = wire
    this.endpoint = wire.session?.endpoint
  }

  get era(): Era {
    return this.#wire.era
  }

  #headers({ method, name }: Partial<OutgoingMessage> = {}): [string, string][] {
    const { version, session } = this.#wire
    const headers: [string, string][] = []
    if (this.traceparent !== undefined) headers.push(['traceparent', this.traceparent])
    if (version !== undefined) headers.push(['mcp-protocol-version', version])
    if (session?.id !== undefined) headers.push(['mcp-session-id', session.id])
    if (this.era === 'legacy' || method === undefined) return headers
    headers.push(['mcp-method', method])
    if (name !== undefined) headers.push(['mcp-name', encodeName(name)])
    return headers
  }

  post(message: OutgoingMessage, listener: AnswerListener): Promise<Flow> {
    const headers = this.#headers(message)
    headers.push(['content-type', 'application/json'], ['accept', bothTypes])
    const { text: body, isLong = false } = message
    return this.#send({ method: 'POST', body, headers, isLong }, listener)
  }

  listen(listener: AnswerListener, from: string | undefined): Promise<Flow> {
    const headers = this.#headers()
    headers.push(['accept', 'text/event-stream'])
    if (from !== undefined) headers.push(['last-event-id', from])
    return this.#send({ method: 'GET', headers, isLong: true }, listener)
  }

  linger(flow: Flow): void {
    this.#exchange.hub.linger(flow)
  }

  ended(flow: Flow): void {
    this.#exchange.hub.ended(flow)
  }

  end(): Promise<void> {
    if (this.#wire.session?.id === undefined) return Promise.resolve()
    return new Promise((resolve) => {
      const listener = { onStream: resolve, onEnd: resolve, onFailure: () => resolve() }
      this.#send({ method: 'DELETE', headers: this.#headers() }, listener).catch(() => resolve())
    })
  }

  async #send(
    message: Omit<TargetMessage, 'pinned' | 'onEndpoint'>,
    listener: AnswerListener,
  ): Promise<Flow> {
    const { runtime, context } = this.#exchange
    const pinned = this.#wire.session?.endpoint
    const onEndpoint = ({ address }: UpstreamEndpoint): void => {
      this.endpoint = address.label
      context.address = address
    }
    const { target } = this.#entry
    const reader = new AnswerReader(listener)
    const begin = (ready: ReadyRequest): void => {
      flow.begun(runtime.call(ready.call, new ObservedCall(reader, ready, flow)))
    }
    const send = (path: string | undefined): void | Promise<void> => {
      const sent = { ...message, pinned, onEndpoint, path }
      const ready = prepareRequest(this.#exchange, this.#entry, sent)
      return ready instanceof Promise ? ready.then(begin) : begin(ready)
    }
    const flow = new MovingFlow(target, send)
    reader.close = () => flow.close()
    const sending = send(learnedPath(target))
    if (sending !== undefined) await sending
    return flow
  }
}

/** Records the outcome of a call in the health of its endpoint, and follows redirects. */
class ObservedCall implements CallListener {
  readonly #listener: CallListener
  readonly #ready: ReadyRequest
  readonly #flow: MovingFlow
  readonly #startedAt = now()
  /** Was the message sent again because of a redirect? Then this response is ignored. */
  #isRedirected = false

  constructor(listener: CallListener, ready: ReadyRequest, flow: MovingFlow) {
    this.#listener = listener
    this.#ready = ready
    this.#flow = flow
  }

  onHead(...[status, headers]: Parameters<CallListener['onHead']>): void {
    const latencyMs = now() - this.#startedAt
    const outcome =
      status < 500
        ? ({ kind: 'answered', latencyMs } as const)
        : ({ kind: 'failed', retryAfterMs: 0 } as const)
    this.#ready.endpoint.record(outcome, now)
    this.#isRedirected = this.#flow.follows(status, headers, this.#ready, (error) => {
      this.#listener.onFailure(
        error instanceof GatewayError ? error : new GatewayError('bug', undefined, error),
      )
    })
    if (!this.#isRedirected) this.#listener.onHead(status, headers)
  }

  onBytes(bytes: Uint8Array): void {
    if (!this.#isRedirected) this.#listener.onBytes(bytes)
  }

  onEnd(): void {
    if (!this.#isRedirected) this.#listener.onEnd()
  }

  onFailure(...[error]: Parameters<CallListener['onFailure']>): void {
    if (error.code === 'connect_failed' || error.code === 'connect_timeout') {
      this.#ready.endpoint.record({ kind: 'unreachable' }, now)
    }
    if (!this.#isRedirected) this.#listener.onFailure(error)
  }
}
