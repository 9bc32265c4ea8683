/**
 * A server may close a stream before its response and let the receiver poll (streamable HTTP,
 * resumability; SEP-1699). The gateway resumes a stream if its client cannot: the client has no session, or gets
 * the responses of several requests on one stream.
 */
import { GatewayError } from '../../../../../ground/errors/index.ts'
import type { EventFields, McpEvent } from '../../event-stream.ts'
import type { McpMessage } from '../../message.ts'
import { LateFlow } from '../target/late-flow.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import { endedEarly, type TargetFailure, toFailure } from '../target/target-failure.ts'
import type { Flow } from '../target/transport.ts'

interface ResumableTransport {
  /** Opens a stream with the events after the one with this id. */
  listen(listener: ResponseListener, from: string | undefined): Promise<Flow>
  /** Called with the id of a session that the server has created. */
  onSession?(id: string): void
}

/** Delay before a stream is opened again if the server states none. */
const defaultRetryMs = 1_000
/** Minimum delay, so that no server makes the gateway busy. */
const minRetryMs = 10
/** Maximum number of attempts in a row that give no event, and of those that fail. */
const maxPolls = 1_000
const maxFailures = 5

export class ResumedStream extends LateFlow implements ResponseListener {
  readonly #transport: ResumableTransport
  readonly #listener: ResponseListener
  /** When the response must be complete; 0 if there is no limit. */
  readonly #deadline: number
  /** Id of the last event. */
  #last: string | undefined
  #retryMs = defaultRetryMs
  #polls = 0
  #failures = 0
  #retry: NodeJS.Timeout | undefined
  #limit: NodeJS.Timeout | undefined
  #hasBegun = false
  #hasResponse = false

  /** `timeoutMs` is the limit of the whole response; 0 means none. */
  constructor(transport: ResumableTransport, listener: ResponseListener, timeoutMs: number) {
    super()
    this.#transport = transport
    this.#listener = listener
    this.#deadline = timeoutMs > 0 ? performance.now() + timeoutMs : 0
  }

  /** Opens the stream of messages that the server sends on its own, and resumes it. */
  static async listen(transport: ResumableTransport, listener: ResponseListener): Promise<Flow> {
    const stream = new ResumedStream(transport, listener, 0)
    return stream.begun(await transport.listen(stream, undefined))
  }

  /** Called when the first request has begun. */
  begun(flow: Flow): this {
    // The stream may have ended already.
    if (this.flow === undefined) this.attach(flow)
    return this
  }

  onSession(id: string): void {
    this.#transport.onSession?.(id)
    this.#listener.onSession?.(id)
  }

  onStream(): void {
    if (this.#hasBegun || this.isOver) return
    this.#hasBegun = true
    this.#listener.onStream?.()
  }

  onMessage(message: McpMessage, eventFields: EventFields | undefined): void {
    if (this.isOver) return
    if (eventFields !== undefined) this.#note(eventFields)
    if (message.kind === 'response') {
      this.#hasResponse = true
      clearTimeout(this.#limit)
    }
    this.#listener.onMessage?.(message, undefined)
  }

  onEvent(event: McpEvent): void {
    this.#note(event)
  }

  #note({ id, retry }: EventFields): void {
    if (id !== undefined) {
      this.#last = id
      this.#polls = 0
      this.#failures = 0
    }
    if (retry !== undefined) this.#retryMs = Math.max(retry, minRetryMs)
  }

  onEnd(): void {
    if (this.isOver) return
    if (this.#hasResponse || this.#last === undefined) {
      this.isOver = true
      this.#listener.onEnd()
    } else if (++this.#polls > maxPolls) this.#fail(endedEarly())
    else this.#resumeLater()
  }

  onFailure(failure: TargetFailure): void {
    if (this.isOver) return
    const { httpResponse, cause, hasTimedOut } = failure
    const isResumed = this.#retry !== undefined
    const isLost =
      cause instanceof GatewayError || (isResumed && (httpResponse?.status ?? 0) >= 500)
    if (this.#hasResponse || this.#last === undefined || hasTimedOut) this.#fail(failure)
    else if (isLost && ++this.#failures <= maxFailures) this.#resumeLater()
    // A refusal to resume says nothing about the request, which the server has accepted.
    else this.#fail(isResumed && httpResponse !== undefined ? endedEarly() : failure)
  }

  #fail(failure: TargetFailure): void {
    this.end()
    this.#listener.onFailure(failure)
  }

  #resumeLater(): void {
    if (this.#deadline > 0 && this.#limit === undefined) {
      const left = Math.max(this.#deadline - performance.now(), 0)
      this.#limit = setTimeout(() => this.#onTimeout(), left).unref()
    }
    this.#retry = setTimeout(() => void this.#resume(), this.#retryMs).unref()
  }

  async #resume(): Promise<void> {
    try {
      this.attach(await this.#transport.listen(this, this.#last))
    } catch (thrown) {
      this.onFailure(toFailure(thrown))
    }
  }

  #onTimeout(): void {
    if (this.isOver) return
    this.flow?.close()
    this.#fail(toFailure(new GatewayError('upstream_timeout')))
  }

  protected override end(): void {
    super.end()
    clearTimeout(this.#retry)
    clearTimeout(this.#limit)
  }
}
