/** Sends messages to a client: a single one as JSON, several as events. */
import type { ResponseStream } from '../../../../../engines/http/contracts/requests.ts'
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { idHeader, type RequestContext } from '../../../../proxy/request/request-context.ts'
import { changeResponse, LocalExchange } from '../../../../proxy/request/response.ts'
import { type EventFields, eventText } from '../../event-stream.ts'
import type { McpSharedState, SweptStream } from '../session/shared-state.ts'
import type { Flow } from '../target/transport.ts'
import type { McpExchange } from './mcp-exchange.ts'
import { jsonResponse } from './refusals.ts'

const streamHeaders = [
  ['content-type', 'text/event-stream'],
  ['cache-control', 'no-cache, no-transform'],
  // Buffering proxies on the way would delay events.
  ['x-accel-buffering', 'no'],
] as const

const noHeaders: readonly [] = []

/** A response to the client. */
export interface ClientResponse {
  readonly text: string
  /** The text as UTF-8, if it was received or is kept like that; it may be in parts. */
  readonly bytes?: Uint8Array | readonly Uint8Array[] | undefined
  readonly eventFields?: EventFields | undefined
  /** Status of a response that is not a stream; 200 if not set. */
  readonly status?: number | undefined
}

const comment = Buffer.from(': \n\n')

/**
 * Sends the messages of one exchange. `result` resolves to the whole response, or to undefined once a stream has
 * begun.
 */
export class MessageStream implements SweptStream {
  readonly result: Promise<RespondVerdict | undefined>
  readonly #context: RequestContext
  readonly #shared: McpSharedState
  readonly #settle: (verdict: RespondVerdict | undefined) => void
  readonly #fail: (error: unknown) => void
  #isOpening = false
  #isEnded = false
  #waiting: Buffer[] = []
  #stream: ResponseStream | undefined
  #resumes: (() => void)[] = []
  #onSweep: (() => void) | undefined
  #removeStop: (() => void) | undefined

  constructor({ context, shared }: McpExchange) {
    this.#context = context
    this.#shared = shared
    const { promise, resolve, reject } = Promise.withResolvers<RespondVerdict | undefined>()
    this.result = promise
    this.#settle = resolve
    this.#fail = reject
  }

  get isStream(): boolean {
    return this.#isOpening
  }

  /** Begins a stream, so that the client knows that the server is working on a response. */
  open(): void {
    if (this.#isOpening || this.#isEnded) return
    this.#isOpening = true
    openStream(this.#context).then((stream) => this.#opened(stream), this.#fail)
  }

  /** Ends the stream when the process is about to stop. `onSweep` is called at each sweep while it is open. */
  keepOpen(onSweep: () => void): void {
    this.#onSweep = onSweep
    this.#removeStop = this.#shared.stops.add(() => this.end())
  }

  #opened(stream: ResponseStream | undefined): void {
    this.#settle(undefined)
    this.#stream = stream
    if (stream === undefined) return
    stream.onDrain = () => this.#drained()
    for (const bytes of this.#waiting.splice(0)) stream.write(bytes)
    if (this.#isEnded) {
      stream.end()
      return
    }
    this.#shared.addSwept(this)
    if (!stream.isSlow) this.#drained()
  }

  #drained(): void {
    for (const resume of this.#resumes.splice(0)) resume()
  }

  /** Whether messages wait because the client reads slowly. */
  get isSlow(): boolean {
    return this.#stream?.isSlow ?? this.#waiting.length > 64
  }

  /** Calls `resume` once, when the client has read all waiting messages. */
  onDrain(resume: () => void): void {
    this.#resumes.push(resume)
  }

  /** Pauses the flow while messages wait. */
  slowDown(flow: Flow | undefined): void {
    if (flow === undefined || !this.isSlow) return
    flow.pause()
    this.onDrain(() => flow.resume())
  }

  /** Sends a message as an event. More messages may follow. */
  send(text: string, eventFields?: EventFields): void {
    this.open()
    this.#write(Buffer.from(eventText({ data: text, ...eventFields })))
  }

  /** Sends an event that is already written. */
  sendEvent(text: string): void {
    this.open()
    this.#write(Buffer.from(text))
  }

  /** Called at each sweep. A comment keeps proxies on the way from closing an idle connection. */
  onSweep(): void {
    this.#onSweep?.()
    if (this.#stream !== undefined && !this.#stream.isSlow) this.#write(comment)
  }

  #write(bytes: Buffer): void {
    if (this.#isEnded) return
    if (this.#stream === undefined) this.#waiting.push(bytes)
    else this.#stream.write(bytes)
  }

  /** Sends the last message: as JSON, with the status, if nothing was sent before; otherwise as an event. */
  finish(response: ClientResponse): void {
    const { bytes, eventFields, status } = response
    if (this.#isOpening || eventFields?.id !== undefined) {
      this.send(response.text, eventFields)
      this.end()
    } else this.respond(jsonResponse(bytes ?? response.text, noHeaders, status))
  }

  /** Ends the stream. */
  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#removeStop?.()
    this.#shared.removeSwept(this)
    this.#stream?.end()
  }

  /** Sends a whole response. Only allowed while nothing has been sent. */
  respond(verdict: RespondVerdict): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#removeStop?.()
    this.#settle(verdict)
  }

  /** Rejects `result` with an error, and ends the stream if there is one. */
  fail(error: unknown): void {
    if (this.#isOpening) this.end()
    this.#fail(error)
  }
}

/**
 * Begins a stream. Policies and filters may change its head. Resolves to undefined if the client has gone.
 */
async function openStream(context: RequestContext): Promise<ResponseStream | undefined> {
  const { exchange } = context
  const id = context.namer?.idFor(context, 200)
  const fields = id === undefined ? streamHeaders : [...streamHeaders, [idHeader, id] as const]
  if (!context.changesResponse) return exchange.respondStream(200, fields)
  const response = { status: 200, headers: fields, body: undefined }
  const local = new LocalExchange(exchange, response)
  await changeResponse(context, local)
  if (context.over) return undefined
  const { status, headers } = local.finished()
  return exchange.respondStream(status, headers)
}
