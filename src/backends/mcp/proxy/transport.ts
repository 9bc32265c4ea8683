/** How messages reach one target, whatever transport it speaks. */

import type { McpEvent } from '../event-stream.ts'
import type { McpMessage, McpResponse } from '../message.ts'
import type { AnswerListener, EventMark } from './answer-reader.ts'
import { TargetFailure } from './failure.ts'

/** Something under way that can be slowed down or given up. */
export interface Flow {
  pause(): void
  resume(): void
  close(): void
}

export interface Transport {
  /** `traceparent` of what is sent; that of the client where it is not set. */
  traceparent?: string | undefined
  /** Label of the endpoint that was asked last. */
  readonly endpoint: string | undefined
  /** Sends a message; what comes of it goes to the listener. Rejects with a GatewayError. */
  post(body: string, listener: AnswerListener): Promise<Flow>
  /** What the server sends by itself. `from`: id of the last event that was seen. */
  listen(listener: AnswerListener, from: string | undefined): Promise<Flow>
  /** An answer is there, and its end is not: it may come for a while. */
  linger(flow: Flow): void
  /** The end of what lingered is there too. */
  ended(flow: Flow): void
  /** Ends the session. Never rejects. */
  end(): Promise<void>
}

/** What comes beside the answer that somebody waits for. */
export interface Relay {
  readonly onStream?: () => void
  readonly onMessage: (message: McpMessage, mark: EventMark | undefined) => void
  readonly onEvent?: (event: McpEvent) => void
  /** Whoever reads what is relayed is slow: `resume` is called when that is over. */
  readonly hold?: (resume: () => void) => boolean
}

export interface Answered {
  readonly response: McpResponse
  readonly mark: EventMark | undefined
  /** Session that the server has named. */
  readonly session: string | undefined
}

/** The caller has no use for the answer any more. */
export interface Abandon {
  onAbandon(close: () => void): void
}

export const ignored: Relay = { onMessage: () => {} }

/**
 * Sends a request and waits for its answer. Answers to other ids are nobody's and are dropped.
 * Rejects with a TargetFailure, or with a GatewayError.
 */
export function ask(
  transport: Transport,
  request: { readonly text: string; readonly id: string },
  relay: Relay,
  abandon: Abandon,
): Promise<Answered> {
  const { promise, resolve, reject } = Promise.withResolvers<Answered>()
  const question = new Question(transport, request.id, relay, resolve, reject)
  transport.post(request.text, question).then((flow) => question.begun(flow), reject)
  abandon.onAbandon(() => question.close())
  return promise
}

class Question implements AnswerListener {
  readonly #transport: Transport
  readonly #id: string
  readonly #relay: Relay
  readonly #resolve: (answered: Answered) => void
  readonly #reject: (failure: TargetFailure) => void
  #flow: Flow | undefined
  #session: string | undefined
  #isOver = false
  #isAnswered = false
  #hasEnded = false
  #hasMarks = false

  constructor(
    transport: Transport,
    id: string,
    relay: Relay,
    resolve: (answered: Answered) => void,
    reject: (failure: TargetFailure) => void,
  ) {
    this.#transport = transport
    this.#id = id
    this.#relay = relay
    this.#resolve = resolve
    this.#reject = reject
  }

  begun(flow: Flow): void {
    this.#flow = flow
    if (this.#isAnswered) this.#linger()
    else if (this.#isOver) flow.close()
  }

  close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#flow?.close()
    this.#reject(new TargetFailure('the client has gone'))
  }

  /** The connection can serve others once the server has ended the answer. */
  #linger(): void {
    if (this.#flow !== undefined && !this.#hasEnded) this.#transport.linger(this.#flow)
  }

  #end(): void {
    this.#hasEnded = true
    if (this.#flow !== undefined && this.#isAnswered) this.#transport.ended(this.#flow)
  }

  onSession(id: string): void {
    this.#session = id
  }

  onStream(): void {
    // What comes together with the head needs no stream to the client.
    setImmediate(() => {
      if (!this.#isOver) this.#relay.onStream?.()
    })
  }

  onMessage(message: McpMessage, mark: EventMark | undefined): void {
    if (this.#isOver) return
    if (mark?.id !== undefined) this.#hasMarks = true
    if (message.kind !== 'response') {
      this.#relay.onMessage(message, mark)
      this.#slowDown()
      return
    }
    if (message.id !== this.#id) return
    this.#isOver = true
    this.#isAnswered = true
    this.#linger()
    this.#resolve({ response: message, mark, session: this.#session })
  }

  onEvent(event: McpEvent): void {
    if (this.#isOver) return
    if (event.id !== undefined) this.#hasMarks = true
    this.#relay.onEvent?.(event)
    this.#slowDown()
  }

  #slowDown(): void {
    const flow = this.#flow
    if (flow === undefined || this.#relay.hold?.(() => flow.resume()) !== true) return
    flow.pause()
  }

  onEnd(): void {
    this.#end()
    if (this.#isOver) return
    this.#isOver = true
    const message = 'the server has ended without an answer'
    this.#reject(new TargetFailure(message, { isResumable: this.#hasMarks }))
  }

  onFailure(failure: TargetFailure): void {
    this.#end()
    if (this.#isOver) return
    this.#isOver = true
    const { message, answer, cause } = failure
    const isResumable = this.#hasMarks && answer === undefined
    this.#reject(isResumable ? new TargetFailure(message, { isResumable }, cause) : failure)
  }
}
