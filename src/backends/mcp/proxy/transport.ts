/** Sends messages to a target over either transport, and waits for responses. */
import { codes, errorCodeOf } from '../answers.ts'
import type { EventFields, McpEvent } from '../event-stream.ts'
import { type McpMessage, type McpResponse, MessageRefusal, readMessage } from '../message.ts'
import type { Era } from '../methods.ts'
import type { AnswerListener } from './answer-reader.ts'
import { TargetFailure } from './refusals.ts'

/** A running request that can be paused or cancelled. */
export interface Flow {
  pause(): void
  resume(): void
  close(): void
}

/** A message for a target. */
export interface OutgoingMessage {
  readonly text: string
  /** The text as UTF-8, if it was received like that. */
  readonly bytes?: Uint8Array | undefined
  /** The method, and what the message names at the target; for headers of modern requests. */
  readonly method?: string
  readonly name?: string | undefined
  /** Is the response a stream without an end? */
  readonly isLong?: boolean | undefined
}

export interface OutgoingRequest extends OutgoingMessage {
  readonly id: string
  readonly method: string
}

export interface Transport {
  readonly era: Era
  /** `traceparent` of requests. If not set, that of the client is sent. */
  traceparent?: string | undefined
  /** Label of the endpoint of the last request. */
  readonly endpoint: string | undefined
  /** Sends a message; the response goes to the listener. Throws or rejects with a GatewayError. */
  post(message: OutgoingMessage, listener: AnswerListener): Flow | Promise<Flow>
  /**
   * Opens the stream for messages that the server sends on its own. `from` is the id of the last received
   * event.
   */
  listen(listener: AnswerListener, from: string | undefined): Promise<Flow>
  /** Keeps a connection open for a while after its response, so that the server can end it. */
  linger?(flow: Flow): void
  /** Called when the connection of a lingering flow has ended. */
  ended?(flow: Flow): void
  /** Ends the session. Never rejects. */
  end(): Promise<void>
}

/** Receives the messages and events that precede a response. */
export interface Relay {
  onStream?(): void
  onMessage(message: McpMessage, eventFields: EventFields | undefined): void
  onEvent?(event: McpEvent): void
  /** Returns true if the client reads slowly. Then `resume` is called when it has caught up. */
  hold?(resume: () => void): boolean
}

export interface ReceivedResponse {
  readonly response: McpResponse
  readonly eventFields: EventFields | undefined
  /** Id of the session that the server has created, if any. */
  readonly session: string | undefined
  /** Status of a modern error response; 200 if not set. */
  readonly status?: number
}

/** Registers a function that cancels a request. It is called when the client has gone. */
export type OnAbandon = (close: () => void) => void

export const ignored: Relay = { onMessage: () => {} }

/** Sends a request and waits for its response. Responses with other ids are dropped. */
export function ask(
  transport: Transport,
  request: OutgoingRequest,
  relay: Relay,
  onAbandon: OnAbandon,
): Promise<ReceivedResponse> {
  return new Promise((resolve, reject) => {
    const pending = new PendingRequest(transport, request.id, relay, resolve, reject)
    const flow = transport.post(request, pending)
    if (flow instanceof Promise) flow.then((one) => pending.begun(one), reject)
    else pending.begun(flow)
    onAbandon(() => pending.close())
  })
}

class PendingRequest implements AnswerListener {
  readonly #transport: Transport
  readonly #id: string
  readonly #relay: Relay
  readonly #resolve: (answered: ReceivedResponse) => void
  readonly #reject: (failure: TargetFailure) => void
  #flow: Flow | undefined
  #session: string | undefined
  #isOver = false
  #isAnswered = false
  #hasEnded = false
  #hasEventIds = false

  constructor(
    transport: Transport,
    id: string,
    relay: Relay,
    resolve: (answered: ReceivedResponse) => void,
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

  /** Keeps the connection open, because it can be reused once the server has ended the response. */
  #linger(): void {
    if (this.#flow !== undefined && !this.#hasEnded) this.#transport.linger?.(this.#flow)
  }

  #end(): void {
    this.#hasEnded = true
    if (this.#flow !== undefined && this.#isAnswered) this.#transport.ended?.(this.#flow)
  }

  onSession(id: string): void {
    this.#session = id
  }

  onStream(): void {
    // A response that arrives together with the head needs no stream to the client.
    setImmediate(() => {
      if (!this.#isOver) this.#relay.onStream?.()
    })
  }

  onMessage(message: McpMessage, eventFields: EventFields | undefined): void {
    if (this.#isOver) return
    if (eventFields?.id !== undefined) this.#hasEventIds = true
    if (message.kind !== 'response') {
      this.#relay.onMessage(message, eventFields)
      this.#slowDown()
      return
    }
    if (message.id !== this.#id) return
    this.#isOver = true
    this.#isAnswered = true
    this.#linger()
    this.#resolve({ response: message, eventFields, session: this.#session })
  }

  onEvent(event: McpEvent): void {
    if (this.#isOver) return
    if (event.id !== undefined) this.#hasEventIds = true
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
    this.#reject(new TargetFailure(message, { isResumable: this.#hasEventIds }))
  }

  onFailure(failure: TargetFailure): void {
    this.#end()
    if (this.#isOver) return
    this.#isOver = true
    const response = this.#transport.era === 'modern' ? errorResponse(failure, this.#id) : undefined
    if (response !== undefined) {
      const status = failure.answer?.status ?? 400
      this.#resolve({ response, eventFields: undefined, session: undefined, status })
      return
    }
    const { message, answer, cause } = failure
    const isResumable = this.#hasEventIds && answer === undefined
    this.#reject(isResumable ? new TargetFailure(message, { isResumable }, cause) : failure)
  }
}

/** Codes of errors that modern servers send with status 400 or 404. */
const modernCodes = new Set<number>(Object.values(codes))

/**
 * Returns the JSON-RPC error in a response with status 400 or 404, which modern servers use for errors of the
 * protocol; undefined if it is not an answer to the request.
 */
export function errorResponse({ answer }: TargetFailure, id: string): McpResponse | undefined {
  if (answer === undefined || (answer.status !== 400 && answer.status !== 404)) return undefined
  try {
    const message = readMessage(Buffer.from(answer.body).toString())
    if (message.kind !== 'response' || message.id !== id) return undefined
    return modernCodes.has(errorCodeOf(message.text) ?? 0) ? message : undefined
  } catch (error) {
    if (error instanceof MessageRefusal) return undefined
    throw error
  }
}
