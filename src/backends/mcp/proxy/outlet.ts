/** The way back to a client: one message as JSON, or as many as there are as events. */
import type { ResponseStream } from '../../../engine/contracts/requests.ts'
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { eventText } from '../event-stream.ts'
import type { EventMark } from './answer-reader.ts'
import { streamAnswer } from './stream-answer.ts'

type Headers = readonly (readonly [string, string])[]

/** What is sent to a client. */
interface Outlet {
  /** The answer takes its time: the client should know that it comes. */
  open(): void
  /** A message that is not the last one, or an event without a message (`text` is empty). */
  send(text: string, mark?: EventMark): void
  /** The client reads slowly. */
  readonly isSlow: boolean
  /** Called once when it has caught up. */
  onDrain(resume: () => void): void
}

/** Text of the stream that has not been asked for by anybody yet, at most. */
const comment = Buffer.from(': \n\n')

/** Of one exchange. `result` settles when its phase is over: with an answer, or as a stream has begun. */
export class ExchangeOutlet implements Outlet {
  readonly result: Promise<RespondVerdict | undefined>
  readonly #context: RequestContext
  readonly #settle: (verdict: RespondVerdict | undefined) => void
  readonly #fail: (error: unknown) => void
  #headers: Headers = []
  #isOpening = false
  #isEnded = false
  #waiting: Buffer[] = []
  #stream: ResponseStream | undefined
  #resumes: (() => void)[] = []

  constructor(context: RequestContext) {
    this.#context = context
    const { promise, resolve, reject } = Promise.withResolvers<RespondVerdict | undefined>()
    this.result = promise
    this.#settle = resolve
    this.#fail = reject
  }

  /** For every answer, as JSON or as a stream. */
  set headers(headers: Headers) {
    this.#headers = headers
  }

  get isStream(): boolean {
    return this.#isOpening
  }

  open(): void {
    if (this.#isOpening || this.#isEnded) return
    this.#isOpening = true
    const headers = [
      ['content-type', 'text/event-stream'] as const,
      ['cache-control', 'no-cache, no-transform'] as const,
      // Buffering proxies on the way would hold events back.
      ['x-accel-buffering', 'no'] as const,
      ...this.#headers,
    ]
    streamAnswer(this.#context, 200, headers).then((stream) => this.#opened(stream), this.#fail)
  }

  #opened(stream: ResponseStream | undefined): void {
    this.#settle(undefined)
    this.#stream = stream
    if (stream === undefined) return
    stream.onDrain = () => this.#drained()
    for (const bytes of this.#waiting.splice(0)) stream.write(bytes)
    if (this.#isEnded) stream.end()
    else if (!stream.isSlow) this.#drained()
  }

  #drained(): void {
    for (const resume of this.#resumes.splice(0)) resume()
  }

  get isSlow(): boolean {
    return this.#stream?.isSlow ?? this.#waiting.length > 64
  }

  onDrain(resume: () => void): void {
    this.#resumes.push(resume)
  }

  send(text: string, mark?: EventMark): void {
    this.open()
    this.#write(Buffer.from(eventText({ data: text, ...mark })))
  }

  /** An event as it is. */
  sendEvent(text: string): void {
    this.open()
    this.#write(Buffer.from(text))
  }

  /** Keeps whatever lies between from taking the connection for dead. */
  keepAlive(): void {
    if (this.#stream !== undefined && !this.#stream.isSlow) this.#write(comment)
  }

  #write(bytes: Buffer): void {
    if (this.#isEnded) return
    if (this.#stream === undefined) this.#waiting.push(bytes)
    else this.#stream.write(bytes)
  }

  /** The last message: JSON where nothing was sent before it. */
  finish(text: string, mark?: EventMark): void {
    if (this.#isOpening || mark?.id !== undefined) {
      this.send(text, mark)
      this.end()
    } else this.answer(200, [['content-type', 'application/json']], text, 'Upstream')
  }

  /** Nothing follows. */
  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#stream?.end()
  }

  /** An answer of another kind; only while nothing has been sent. */
  answer(
    status: number,
    headers: Headers,
    body: string | Uint8Array | undefined,
    reason: string,
  ): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const all = [...headers, ...this.#headers]
    this.#settle({
      kind: 'respond',
      status,
      headers: all,
      ...(body !== undefined && { body }),
      reason,
    })
  }

  /** A bug, or an error that is answered as that of any exchange. */
  fail(error: unknown): void {
    if (this.#isOpening) this.end()
    this.#fail(error)
  }
}
