/** Sends messages to a target over either transport, and waits for responses. */

import type { EventFields, McpEvent } from '../../event-stream.ts'
import { gatewayRequestId } from '../../ids.ts'
import { codes, errorCodeOf, errorText, requestText, resultText } from '../../json-rpc.ts'
import {
  type McpMessage,
  type McpRequest,
  type McpResponse,
  MessageRefusal,
  readResponse,
  responseTo,
} from '../../message.ts'
import type { ProtocolEra } from '../../methods.ts'
import type { ResponseListener } from './response-reader.ts'
import { endedEarly, type HttpErrorResponse, TargetFailure } from './target-failure.ts'

/** A running request that can be paused or cancelled. */
export interface Flow {
  /** Whether the whole response was received, although the listener may not have got all of it. */
  readonly isReceived?: boolean
  pause(): void
  resume(): void
  close(): void
}

/** A flow that has nothing to pause or cancel. */
export const idleFlow: Flow = { pause: () => {}, resume: () => {}, close: () => {} }

/** A message for a target. */
export interface OutgoingMessage {
  readonly text: string
  /** The text as UTF-8, if it was received like that. */
  readonly bytes?: Uint8Array | undefined
  /** The method, and what the message names at the target; for headers of modern requests. */
  readonly method?: string
  readonly name?: string | undefined
  /** Whether the response is a stream without an end. */
  readonly isLong?: boolean | undefined
  /** Whether it is a notification or a response. Then nothing in the body of a successful response matters. */
  readonly isNotice?: boolean | undefined
}

export interface OutgoingRequest extends OutgoingMessage {
  readonly id: string
  readonly method: string
}

export interface Transport {
  readonly era: ProtocolEra
  /** `traceparent` of requests. If not set, that of the client is sent. */
  traceparent?: string | undefined
  /** Whether the client resumes the streams of its responses. If not set, the gateway does. */
  clientResumes?: boolean
  /** Label of the endpoint of the last request. */
  readonly endpoint: string | undefined
  /** Sends a message; the response goes to the listener. Throws or rejects with a GatewayError. */
  post(message: OutgoingMessage, listener: ResponseListener): Flow | Promise<Flow>
  /** Keeps a connection open for a while after its response, so that the server can end it. */
  linger?(flow: Flow): void
  /** Called when the connection of a lingering flow has ended. */
  ended?(flow: Flow): void
}

/** A transport with what only sessions have. */
export interface SessionTransport extends Transport {
  /** Id of the stream of the session (older transport). */
  readonly connection?: string | undefined
  /**
   * Opens the stream for messages that the server sends on its own. `from` is the id of the last received
   * event.
   */
  listen(listener: ResponseListener, from?: string): Promise<Flow>
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
  /** Status of an error response; 200 if not set. */
  readonly status?: number
}

/** Registers a function that cancels a request. It is called when the client has gone. */
export type OnAbandon = (close: () => void) => void

const ignored: Relay = { onMessage: () => {} }
export const never: OnAbandon = () => {}

/** How long a target may take to respond to a request of the gateway itself, or to one that several targets get. */
export const ownLimitMs = 10_000

/**
 * Sends a request and waits for its response, at most for `limitMs` if that is not 0. Responses with other ids
 * are dropped.
 */
export function ask(
  transport: Transport,
  request: OutgoingRequest,
  relay: Relay,
  onAbandon: OnAbandon,
  limitMs = 0,
): Promise<ReceivedResponse> {
  return new Promise((resolve, reject) => {
    const pending = new PendingRequest(transport, request.id, relay, resolve, reject)
    if (limitMs > 0) pending.limit(limitMs)
    const flow = transport.post(request, pending)
    if (flow instanceof Promise) {
      flow.then(
        (one) => pending.begun(one),
        (thrown) => pending.fail(thrown),
      )
    } else pending.begun(flow)
    onAbandon(() => pending.close())
  })
}

/** Makes a request of the gateway itself. `params` is JSON. */
export function gatewayRequest(
  method: string,
  params: string,
  id = gatewayRequestId(),
): OutgoingRequest {
  return { text: requestText(id, method, params), id, method }
}

/** Sends a request of the gateway itself. No client cancels it or gets what precedes the response. */
export const askQuietly = (
  transport: Transport,
  request: OutgoingRequest,
  limitMs = ownLimitMs,
  onAbandon = never,
): Promise<ReceivedResponse> => ask(transport, request, ignored, onAbandon, limitMs)

/** Sends a message that needs no response. Rejects with a TargetFailure or a GatewayError. */
export function notify(transport: Transport, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let flow: Flow | undefined
    let isOver = false
    const end = (settle: () => void) => {
      clearTimeout(timer)
      isOver = true
      settle()
    }
    const timer = setTimeout(() => {
      flow?.close()
      end(() => reject(timedOut()))
    }, ownLimitMs)
    timer.unref()
    const listener = {
      // The start of any successful response counts as acceptance. Its body may be a stream that does not end.
      onStream: () => {
        end(resolve)
        if (flow !== undefined) transport.linger?.(flow)
      },
      onEnd: () => {
        end(resolve)
        if (flow !== undefined) transport.ended?.(flow)
      },
      onFailure: (failure: TargetFailure) => end(() => reject(failure)),
    }
    const begun = (one: Flow) => {
      flow = one
      if (isOver) one.close()
    }
    const posted = transport.post({ text, isNotice: true }, listener)
    if (posted instanceof Promise) posted.then(begun, (thrown) => end(() => reject(thrown)))
    else begun(posted)
  })
}

const timedOut = (): TargetFailure =>
  new TargetFailure('the server does not respond in time', { hasTimedOut: true })

/** Resolves like `work`, but rejects and calls `stop` if that takes longer than `ms`; 0 means no limit. */
export function withLimit<Result>(
  work: Promise<Result>,
  ms: number,
  stop: () => void,
): Promise<Result> {
  if (ms === 0) return work
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(timedOut())
      stop()
    }, ms)
    timer.unref()
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

class PendingRequest implements ResponseListener {
  readonly #transport: Transport
  readonly #id: string
  readonly #relay: Relay
  readonly #resolve: (received: ReceivedResponse) => void
  readonly #reject: (thrown: unknown) => void
  #timer: NodeJS.Timeout | undefined
  #flow: Flow | undefined
  #session: string | undefined
  #isOver = false
  #hasResponse = false
  #hasEnded = false
  #hasEventIds = false

  constructor(
    transport: Transport,
    id: string,
    relay: Relay,
    resolve: (received: ReceivedResponse) => void,
    reject: (thrown: unknown) => void,
  ) {
    this.#transport = transport
    this.#id = id
    this.#relay = relay
    this.#resolve = resolve
    this.#reject = reject
  }

  begun(flow: Flow): void {
    this.#flow = flow
    if (this.#hasResponse) this.#linger()
    else if (this.#isOver) flow.close()
  }

  close(): void {
    if (this.#isOver) return
    this.#flow?.close()
    this.fail(new TargetFailure('the client has gone'))
  }

  /** Called if the request could not be sent. */
  fail(thrown: unknown): void {
    if (this.#isOver) return
    this.#finish()
    this.#reject(thrown)
  }

  limit(ms: number): void {
    this.#timer = setTimeout(() => {
      if (this.#isOver) return
      this.#flow?.close()
      this.fail(timedOut())
    }, ms)
    this.#timer.unref()
  }

  #finish(): void {
    this.#isOver = true
    if (this.#timer !== undefined) clearTimeout(this.#timer)
  }

  /** Keeps the connection open, because it can be reused once the server has ended the response. */
  #linger(): void {
    const flow = this.#flow
    if (flow === undefined || flow.isReceived === true || this.#hasEnded) return
    this.#transport.linger?.(flow)
  }

  #end(): void {
    this.#hasEnded = true
    if (this.#flow !== undefined && this.#hasResponse) this.#transport.ended?.(this.#flow)
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
    const response = responseTo(message, this.#id)
    if (response === undefined) return
    this.#finish()
    this.#hasResponse = true
    this.#linger()
    this.#resolve({ response, eventFields, session: this.#session })
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

  get #isResumable(): boolean {
    return this.#hasEventIds && this.#transport.clientResumes === true
  }

  onEnd(): void {
    this.#end()
    if (this.#isOver) return
    this.#finish()
    this.#reject(endedEarly(this.#isResumable))
  }

  onFailure(failure: TargetFailure): void {
    this.#end()
    if (this.#isOver) return
    this.#finish()
    const isModern = this.#transport.era === 'modern'
    const response = isModern
      ? errorResponse(failure, this.#id)
      : legacyErrorResponse(failure, this.#id)
    if (response !== undefined) {
      const status = failure.httpResponse?.status ?? 400
      this.#resolve({ response, eventFields: undefined, session: undefined, status })
      return
    }
    const { message, httpResponse, cause } = failure
    const isResumable = this.#isResumable && httpResponse === undefined
    this.#reject(isResumable ? new TargetFailure(message, { isResumable }, cause) : failure)
  }
}

/** Codes of errors that modern servers send with status 400 or 404. */
const modernCodes = new Set<number>(Object.values(codes))

/**
 * Returns the JSON-RPC error in a response with status 400 or 404, which modern servers use for errors of the
 * protocol; undefined if it is not a response to the request.
 */
export function errorResponse(failure: TargetFailure, id: string): McpResponse | undefined {
  const { httpResponse } = failure
  if (httpResponse === undefined || (httpResponse.status !== 400 && httpResponse.status !== 404))
    return undefined
  const message = ownError(httpResponse, id)
  return message && modernCodes.has(errorCodeOf(message.text) ?? 0) ? message : undefined
}

/** Statuses that say something to the client's HTTP, such as that it must sign in. */
export const statusesForClient = [401, 403, 407, 429]

/**
 * Returns the JSON-RPC error with which a legacy server responds to the request, with any status of an error;
 * undefined if the body is not a response to the request, or if it reports that the session does not exist.
 */
export function legacyErrorResponse(failure: TargetFailure, id: string): McpResponse | undefined {
  const { httpResponse } = failure
  if (httpResponse === undefined || httpResponse.status < 400) return undefined
  if (statusesForClient.includes(httpResponse.status) || failure.namesUnknownSession)
    return undefined
  return ownError(httpResponse, id)
}

/** Returns the error response with this id in the body of a refusal. */
function ownError({ body }: HttpErrorResponse, id: string): McpResponse | undefined {
  try {
    const response = readResponse(Buffer.from(body).toString())
    const own = response && responseTo(response, id)
    return own?.error && own
  } catch (error) {
    if (error instanceof MessageRefusal) return undefined
    throw error
  }
}

/** Responds to a request of a server for a client that does not support it, so that the server does not wait. */
export function respondForClient(transport: Transport, { id, method }: McpRequest): Promise<void> {
  const text =
    method === 'ping'
      ? resultText(id, '{}')
      : errorText(id, codes.methodNotFound, 'The client does not support this request')
  return notify(transport, text)
}
