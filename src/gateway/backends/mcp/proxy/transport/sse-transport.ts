/** The older transport (HTTP with SSE): messages are posted, and all responses come on one stream. */
import { GatewayError } from '../../../../../ground/errors/index.ts'
import type { EventFields } from '../../event-stream.ts'
import { type McpMessage, progressTokenOf, readRequest } from '../../message.ts'
import { isRepeatable } from '../../methods.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { TargetSession } from '../session/session-state.ts'
import type { SseStream } from '../session/shared-streams.ts'
import { LateFlow } from '../target/late-flow.ts'
import { type ResponseListener, ResponseReader } from '../target/response-reader.ts'
import { TargetFailure, toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { Flow, OutgoingMessage, Transport } from '../target/transport.ts'
import { heldConnection, type OpenConnections, SseConnection } from './sse-connection.ts'
import { prepareRequest, timeoutOf } from './target-request.ts'

/** Up to this timeout, no stream begins before the server's response, so the status can be 504. */
const shortTimeoutMs = 15_000

export class SseTransport implements Transport {
  readonly era = 'legacy'
  readonly #exchange: McpExchange
  readonly #entry: McpTargetEntry
  readonly #held: OpenConnections
  readonly #session: TargetSession | undefined
  /** Id of the client's session. */
  readonly #client: string
  #isFresh: boolean
  #isEnded = false

  /** Without a session, the first message opens a new connection. */
  constructor(
    exchange: McpExchange,
    entry: McpTargetEntry,
    held: OpenConnections,
    session: TargetSession | undefined,
    client = '',
  ) {
    this.#exchange = exchange
    this.#entry = entry
    this.#held = held
    this.#session = session
    this.#client = client
    this.#isFresh = session === undefined
  }

  get #connection(): SseConnection | undefined {
    return heldConnection(this.#held, this.#entry)
  }

  get endpoint(): string | undefined {
    return this.#connection?.label
  }

  get connection(): string | undefined {
    return this.#connection?.id
  }

  /** Returns the stream of the session, which the first message opens. */
  #stream(wanted: () => boolean): SseStream | Promise<SseStream> {
    const known = this.#connection
    if (this.#isFresh) return this.#open(known, wanted)
    return known ?? this.#findElsewhere()
  }

  async #open(known: SseConnection | undefined, wanted: () => boolean): Promise<SseStream> {
    this.#isFresh = false
    known?.close()
    const connection = await SseConnection.open(this.#exchange, this.#entry)
    if (!wanted() || this.#isEnded) {
      connection.close()
      throw new TargetFailure('the session has ended')
    }
    this.#held.set(this.#entry.target.name, connection)
    return connection
  }

  async #findElsewhere(): Promise<SseStream> {
    const id = this.#session?.connection
    const { sharedStreams } = this.#exchange.shared
    const found = id === undefined ? undefined : await sharedStreams.find(id, this.#client)
    if (found === undefined) throw new TargetFailure('the server has ended the session')
    return found
  }

  async post({ text }: OutgoingMessage, listener: ResponseListener): Promise<Flow> {
    const call = new SseCall(this.#exchange, this.#entry, text, listener)
    await call.begin((wanted) => this.#stream(wanted))
    return call
  }

  async listen(listener: ResponseListener): Promise<Flow> {
    const stream = await this.#stream(() => true)
    const remove = stream.listen(listener)
    listener.onStream?.()
    return new StreamFlow(stream, remove)
  }

  end(): Promise<void> {
    this.#isEnded = true
    this.#connection?.close()
    this.#held.delete(this.#entry.target.name)
    return Promise.resolve()
  }
}

/** A listener of a stream. If closed while paused, it resumes the stream for other listeners. */
class StreamFlow implements Flow {
  readonly #stream: SseStream
  readonly #remove: () => void
  #isPaused = false

  constructor(stream: SseStream, remove: () => void) {
    this.#stream = stream
    this.#remove = remove
  }

  pause(): void {
    this.#isPaused = true
    this.#stream.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#stream.resume()
  }

  close(): void {
    this.#remove()
    if (this.#isPaused) this.resume()
  }
}

/** A message, and the response to it on the stream. The timeout is that of the whole response. */
class SseCall extends LateFlow implements ResponseListener {
  readonly #exchange: McpExchange
  readonly #entry: McpTargetEntry
  readonly #text: string
  readonly #listener: ResponseListener
  readonly #timeoutMs: number
  #timer: NodeJS.Timeout | undefined

  constructor(
    exchange: McpExchange,
    entry: McpTargetEntry,
    text: string,
    listener: ResponseListener,
  ) {
    super()
    this.#exchange = exchange
    this.#entry = entry
    this.#text = text
    this.#listener = listener
    this.#timeoutMs = timeoutOf(exchange, entry)
    if (this.#timeoutMs === 0) return
    this.#timer = setTimeout(() => this.#onTimeout(), this.#timeoutMs)
    this.#timer.unref()
  }

  /** Sends the message. Rejects with a TargetFailure or GatewayError. */
  async begin(find: (wanted: () => boolean) => SseStream | Promise<SseStream>): Promise<void> {
    try {
      const stream = await find(() => !this.isOver)
      if (!this.isOver) await this.#send(stream)
    } catch (thrown) {
      if (this.isOver) return
      this.close()
      throw thrown
    }
  }

  async #send(stream: SseStream): Promise<void> {
    const { messagePath: path, label: pinned } = stream
    const headers = [['content-type', 'application/json'] as const]
    const request = readRequest(this.#text)
    const repeats = { isRepeatable: isRepeatable(request?.method) }
    const sent = { method: 'POST', body: this.#text, headers, path, pinned } as const
    const ready = await prepareRequest(this.#exchange, this.#entry, { ...sent, ...repeats })
    if (this.isOver) return
    const forget = () => {
      if (request !== undefined) stream.forget(request.id)
    }
    this.attach(new StreamFlow(stream, forget))
    if (request !== undefined) {
      const progressToken = progressTokenOf(request)
      await stream.expect(request.id, { listener: this, progressToken })
      if (this.isOver) return
    }
    // The response comes on the stream. The body of the response to the POST is ignored.
    const accepted = () => (request === undefined ? this.onEnd() : this.#onAccepted())
    const failed = (failure: TargetFailure) => this.onFailure(failure)
    const reader = new ResponseReader({ onEnd: accepted, onFailure: failed }, true)
    reader.call = this.#exchange.runtime.call(ready, reader)
  }

  #onAccepted(): void {
    const isShort = this.#timeoutMs > 0 && this.#timeoutMs <= shortTimeoutMs
    if (!this.isOver && !isShort) this.#listener.onStream?.()
  }

  onMessage(message: McpMessage, eventFields: EventFields | undefined): void {
    if (!this.isOver) this.#listener.onMessage?.(message, eventFields)
  }

  onEnd(): void {
    if (this.isOver) return
    this.close()
    this.#listener.onEnd()
  }

  onFailure(failure: TargetFailure): void {
    if (this.isOver) return
    this.close()
    this.#listener.onFailure(failure)
  }

  #onTimeout(): void {
    this.onFailure(toFailure(new GatewayError('upstream_timeout')))
  }

  protected override end(): void {
    super.end()
    clearTimeout(this.#timer)
  }
}
