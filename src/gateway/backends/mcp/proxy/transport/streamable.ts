/** Streamable HTTP to a target: each message is a separate request. */
import { encodeName } from '../../eras/headers.ts'
import { isRepeatable, type ProtocolEra } from '../../methods.ts'
import { acceptIdentity } from '../exchange/forwarded-headers.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { TargetSession } from '../session/session-state.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import {
  type Flow,
  type OutgoingMessage,
  ownLimitMs,
  type Transport,
  withLimit,
} from '../target/transport.ts'
import { ResumedStream } from './resumed-stream.ts'
import { TargetCall } from './target-call.ts'
import { timeoutOf } from './target-request.ts'

type Field = readonly [name: string, value: string]

/** The version and the session in the headers of messages to a target. */
export interface TargetWire {
  readonly era: ProtocolEra
  /** Not set for `initialize`, which agrees on a version. */
  readonly version?: string
  readonly session?: TargetSession
}

export const legacyWire = (session: TargetSession | undefined): TargetWire =>
  session === undefined ? { era: 'legacy' } : { era: 'legacy', version: session.version, session }

export const modernWire = (version: string): TargetWire => ({ era: 'modern', version })

const jsonBody: Field = ['content-type', 'application/json']
const acceptsBoth: Field = ['accept', 'application/json, text/event-stream']
const acceptsEvents: Field = ['accept', 'text/event-stream']

const none: readonly Field[] = []
const sessionHeaders = new WeakMap<TargetSession, readonly Field[]>()

export class StreamableTransport implements Transport {
  readonly exchange: McpExchange
  readonly entry: McpTargetEntry
  readonly #wire: TargetWire
  endpoint: string | undefined
  traceparent: string | undefined
  clientResumes = false
  /** Id of the session that the server has created in response to `initialize`. */
  #created: string | undefined

  constructor(exchange: McpExchange, entry: McpTargetEntry, wire: TargetWire) {
    this.exchange = exchange
    this.entry = entry
    this.#wire = wire
    this.endpoint = wire.session?.endpoint
  }

  /** Path of messages, if not that of the target. */
  get path(): string | undefined {
    return undefined
  }

  /** Further headers of each message. */
  protected ownHeaders(): readonly Field[] {
    return none
  }

  get era(): ProtocolEra {
    return this.#wire.era
  }

  /** Label of the endpoint that has the session. */
  get pinned(): string | undefined {
    return this.#wire.session?.endpoint
  }

  #headers({ method, name }: Partial<OutgoingMessage> = {}): Field[] {
    const { version, session } = this.#wire
    const headers: Field[] = [acceptIdentity, ...this.ownHeaders()]
    if (this.traceparent !== undefined) headers.push(['traceparent', this.traceparent])
    if (version !== undefined) headers.push(['mcp-protocol-version', version])
    const id = session?.id ?? this.#created
    if (id !== undefined) headers.push(['mcp-session-id', id])
    if (this.era === 'legacy' || method === undefined) return headers
    headers.push(['mcp-method', method])
    if (name !== undefined) headers.push(['mcp-name', encodeName(name)])
    return headers
  }

  post(message: OutgoingMessage, listener: ResponseListener): Flow | Promise<Flow> {
    const { session } = this.#wire
    const headers =
      session === undefined || this.traceparent !== undefined || this.ownHeaders().length > 0
        ? this.#postHeaders(message)
        : this.#sessionHeaders(session)
    const { text, bytes, isLong, isNotice, method } = message
    const repeats = { isRepeatable: isRepeatable(method) }
    const sent = { method: 'POST', body: bytes ?? text, headers, isLong, ...repeats } as const
    if (this.clientResumes || isNotice === true || this.era === 'modern') {
      return new TargetCall(this, sent, listener, isNotice).begin()
    }
    const stream = new ResumedStream(this, listener, timeoutOf(this.exchange, this.entry))
    const call = new TargetCall(this, sent, stream).begin()
    return call instanceof Promise ? call.then((one) => stream.begun(one)) : stream.begun(call)
  }

  onSession(id: string): void {
    this.#created = id
  }

  #postHeaders(message: OutgoingMessage): Field[] {
    const headers = this.#headers(message)
    headers.push(jsonBody, acceptsBoth)
    return headers
  }

  /** Returns the headers of a message in a session, which are the same for all of its messages. */
  #sessionHeaders(session: TargetSession): readonly Field[] {
    let headers = sessionHeaders.get(session)
    if (headers === undefined) {
      headers = this.#postHeaders({ text: '' })
      sessionHeaders.set(session, headers)
    }
    return headers
  }

  async listen(listener: ResponseListener, from: string | undefined): Promise<Flow> {
    const headers = this.#headers()
    headers.push(acceptsEvents)
    if (from !== undefined) headers.push(['last-event-id', from])
    return await new TargetCall(this, { method: 'GET', headers, isLong: true }, listener).begin()
  }

  linger(flow: Flow): void {
    this.exchange.shared.linger(flow)
  }

  ended(flow: Flow): void {
    this.exchange.shared.ended(flow)
  }

  async end(): Promise<void> {
    if (this.#wire.session?.id === undefined) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const listener = { onStream: resolve, onEnd: resolve, onFailure: () => resolve() }
    const call = new TargetCall(
      this,
      { method: 'DELETE', headers: this.#headers() },
      listener,
      true,
    )
    try {
      await withLimit(
        Promise.resolve(call.begin()).then(() => promise),
        ownLimitMs,
        () => {
          call.close()
        },
      )
    } catch {
      // The session ends at the server by itself.
    }
  }
}
