/**
 * One request of a modern client to a legacy server. If the server sends requests, the client gets an
 * `input_required` result and the call is held until the client comes back with the input, in any thread.
 */

import type { Envelope } from '../../eras/envelope.ts'
import {
  inputRequiredText,
  isLogged,
  type LegacyIds,
  type ServerRequest,
  toLegacyRequest,
  toModernResponse,
  withProgressToken,
} from '../../eras/modern-to-legacy.ts'
import { declares } from '../../eras/server-requests.ts'
import { gatewayRequestId, newId } from '../../ids.ts'
import { codes, errorCodeOf, notificationText, resultText } from '../../json-rpc.ts'
import {
  type McpMessage,
  type McpNotification,
  type McpRequest,
  type McpResponse,
  progressTokenOf,
  readMessage,
  readRequest,
  responseTo,
} from '../../message.ts'
import type { CallInput, CrossThreadCalls } from '../session/cross-thread-calls.ts'
import { LateFlow } from '../target/late-flow.ts'
import { passResponse, type ResponseListener } from '../target/response-reader.ts'
import { endedEarly, refusedWith, type TargetFailure, toFailure } from '../target/target-failure.ts'
import {
  legacyErrorResponse,
  notify,
  respondForClient,
  type Transport,
} from '../target/transport.ts'
import { isErrorOfModern } from './target-eras.ts'

/** How long a call waits for the client's input. */
const heldMs = 5 * 60_000
/** Maximum number of requests of a server in one call. */
const maxAsked = 64

export interface LegacyTargetParts {
  readonly calls: CrossThreadCalls
  readonly envelope: Envelope
  /** The client's capabilities. */
  readonly capabilities: unknown
  /** Digest of who may continue a call that waits for input. */
  readonly owner: string
  /** Response of the server to `initialize`. */
  readonly initializeResponse: McpResponse
  /** Called when the session is needed no more. */
  release(): void
}

export class InputRequiredCall extends LateFlow implements ResponseListener {
  /** Replaced in each round: the request with which the client came, and where its response goes. */
  #request: McpRequest
  #listener: ResponseListener | undefined
  readonly #inner: Transport
  readonly #parts: LegacyTargetParts
  readonly #ids: LegacyIds
  /** Names the held call. */
  readonly #state = `sluice/${newId()}`
  /** Requests of the server that have no response yet. */
  #asked: ServerRequest[] = []
  #count = 0
  #timer: NodeJS.Timeout | undefined
  #stopHolding: (() => void) | undefined
  /** The end of the call, if it came while the client was away. */
  #final: (() => void) | undefined
  #isFlushing = false

  constructor(
    request: McpRequest,
    listener: ResponseListener,
    inner: Transport,
    parts: LegacyTargetParts,
  ) {
    super()
    this.#request = request
    this.#listener = listener
    this.#inner = inner
    this.#parts = parts
    const wantsProgress = progressTokenOf(request) !== undefined
    const id = gatewayRequestId()
    this.#ids = { id, progressToken: wantsProgress ? id : undefined }
  }

  async begin(): Promise<void> {
    const text = toLegacyRequest(this.#request, this.#ids)
    this.attach(await this.#inner.post({ text, method: this.#request.method }, this))
  }

  onStream(): void {
    this.#listener?.onStream?.()
  }

  onMessage(message: McpMessage): void {
    if (this.isOver) return
    switch (message.kind) {
      case 'request':
        this.#onRequest(message)
        break
      case 'notification':
        this.#onNotification(message)
        break
      case 'response':
        this.#onResponse(message)
    }
  }

  #onResponse(message: McpResponse): void {
    const response = responseTo(message, this.#ids.id)
    if (response === undefined) return
    this.#finish((listener) => {
      const text = toModernResponse(response, this.#request)
      if (errorCodeOf(text) === codes.methodNotFound) listener.onFailure(notFound(text))
      else passResponse(listener, text)
    })
  }

  #onRequest(request: McpRequest): void {
    this.#count += 1
    const isAllowed = this.#count <= maxAsked && request.method !== 'ping'
    if (!isAllowed || !declares(request, this.#parts.capabilities)) {
      respondToServer(this.#inner, request)
      return
    }
    this.#asked.push({ key: `request-${this.#count}`, request })
    this.#flush()
  }

  /** Sends what the server has asked so far, once all that arrived with it has been read. */
  #flush(): void {
    if (this.#isFlushing) return
    this.#isFlushing = true
    setImmediate(() => {
      this.#isFlushing = false
      const listener = this.#listener
      if (this.isOver || listener === undefined || this.#asked.length === 0) return
      this.#hold()
      passResponse(listener, inputRequiredText(this.#request.id, this.#asked, this.#state))
    })
  }

  #hold(): void {
    this.#listener = undefined
    this.#stopHolding = this.#parts.calls.hold(this.#state, this.#parts.owner, {
      resume: (input, listener) => this.#resume(input, listener),
      leave: () => this.close(),
    })
    this.#timer = setTimeout(() => this.close(), heldMs)
    this.#timer.unref()
  }

  /** Called when the client has come back. */
  #resume({ text, responses }: CallInput, listener: ResponseListener): void {
    clearTimeout(this.#timer)
    this.#stopHolding?.()
    const request = readRequest(text)
    if (request === undefined) return
    this.#request = request
    this.#listener = listener
    const given = new Map(responses)
    const missing: ServerRequest[] = []
    for (const one of this.#asked) {
      const response = given.get(one.key)
      if (response === undefined) missing.push(one)
      else this.#respond(resultText(one.request.id, response))
    }
    this.#asked = missing
    if (this.#final !== undefined) this.#final()
    else if (missing.length > 0) this.#flush()
  }

  #respond(text: string): void {
    notify(this.#inner, text).catch((thrown) => this.onFailure(toFailure(thrown)))
  }

  #onNotification(message: McpNotification): void {
    const { method } = message
    if (method === 'notifications/message') {
      if (!isLogged(message, this.#parts.envelope.logLevel)) return
      this.#listener?.onMessage?.(message, undefined)
    } else if (method === 'notifications/progress') {
      const token = progressTokenOf(this.#request)
      if (token === undefined) return
      this.#listener?.onMessage?.(readMessage(withProgressToken(message, token)), undefined)
    } else this.#listener?.onMessage?.(message, undefined)
  }

  onEnd(): void {
    this.onFailure(endedEarly())
  }

  onFailure(failure: TargetFailure): void {
    const response = legacyErrorResponse(failure, this.#ids.id)
    // The id in the body is the gateway's. A server that has become modern is asked again instead.
    if (response !== undefined && !isErrorOfModern(response)) this.#onResponse(response)
    else this.#finish((listener) => listener.onFailure(failure))
  }

  /** Ends the call. If the client is away, it gets the end when it comes back. */
  #finish(send: (listener: ResponseListener) => void): void {
    if (this.isOver || this.#final !== undefined) return
    const end = () => {
      const listener = this.#listener
      this.end()
      this.#parts.release()
      if (listener !== undefined) send(listener)
    }
    if (this.#listener === undefined) this.#final = end
    else end()
  }

  protected override end(): void {
    super.end()
    clearTimeout(this.#timer)
    this.#stopHolding?.()
  }

  /** Cancels the call. Legacy servers do not take the end of a connection for that. */
  override close(): void {
    if (this.isOver) return
    super.close()
    if (this.#final !== undefined) {
      this.#parts.release()
      return
    }
    const reason = '"reason":"the client has closed the response"'
    const params = `{"requestId":${this.#ids.id},${reason}}`
    notify(this.#inner, notificationText('notifications/cancelled', params))
      .catch((thrown) => toFailure(thrown))
      .finally(() => this.#parts.release())
  }
}

/** In the modern era this error has a status of its own. */
const notFound = (text: string): TargetFailure =>
  refusedWith('the server does not know the method', 404, text)

/** Responds to a request of a server that the client does not support. */
export function respondToServer(inner: Transport, request: McpRequest): void {
  // If that fails, the server has no use for the response.
  respondForClient(inner, request).catch((thrown) => toFailure(thrown))
}
