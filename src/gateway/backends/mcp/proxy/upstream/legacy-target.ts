/** A legacy server for a modern client: the gateway holds the session that the client does not have. */

import { readInitializeResult } from '../../eras/initialize.ts'
import { discoverOfLegacy, isLogLevel } from '../../eras/modern-to-legacy.ts'
import { acknowledgement, honouredBy, readFilter, withTag } from '../../eras/subscriptions.ts'
import { type McpRequest, readMessage } from '../../message.ts'
import { codes, errorText, requestText } from '../../responses.ts'
import { newSessionId } from '../session/session-state.ts'
import { isGoneStatus, TargetFailure, toFailure } from '../target/refusals.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import {
  ask,
  type Flow,
  ignored,
  type OutgoingMessage,
  ownLimitMs,
  type Transport,
} from '../target/transport.ts'
import { ResumedStream } from '../transport/resumed-stream.ts'
import {
  InputRequiredCall,
  type LegacyTargetParts,
  respondToServer,
} from './input-required-call.ts'

const idle: Flow = { pause: () => {}, resume: () => {}, close: () => {} }

const ownId = (): string => JSON.stringify(`sluice/${newSessionId()}`)

export class LegacyTarget implements Transport {
  readonly era = 'modern'
  readonly #inner: Transport
  readonly #parts: LegacyTargetParts

  constructor(inner: Transport, parts: LegacyTargetParts) {
    this.#inner = inner
    this.#parts = parts
  }

  get endpoint(): string | undefined {
    return this.#inner.endpoint
  }

  set traceparent(value: string | undefined) {
    this.#inner.traceparent = value
  }

  async post({ text }: OutgoingMessage, listener: ResponseListener): Promise<Flow> {
    const request = readMessage(text)
    if (request.kind !== 'request') {
      listener.onEnd()
      return idle
    }
    const { logLevel } = this.#parts.envelope
    if (logLevel !== undefined && !isLogLevel(logLevel)) {
      const message = `Invalid log level: ${logLevel}`
      return this.#respond(listener, errorText(request.id, codes.invalidParams, message))
    }
    if (request.method === 'server/discover') return this.#discover(request, listener)
    if (request.method === 'subscriptions/listen') return this.#subscribe(request, listener)
    if (logLevel !== undefined) await this.#setLevel(logLevel)
    const call = new InputRequiredCall(request, listener, this.#inner, this.#parts)
    await call.begin()
    return call
  }

  #respond(listener: ResponseListener, text: string): Flow {
    listener.onMessage?.(readMessage(text), undefined)
    listener.onEnd()
    this.#parts.release()
    return idle
  }

  #discover({ id }: McpRequest, listener: ResponseListener): Flow {
    return this.#respond(listener, discoverOfLegacy(id, this.#parts.initializeResponse))
  }

  /** Legacy servers have one level for a session, which may fail without an effect on the request. */
  async #setLevel(level: string): Promise<void> {
    const id = ownId()
    const text = requestText(id, 'logging/setLevel', JSON.stringify({ level }))
    await this.#ask(id, 'logging/setLevel', text)
  }

  /** Asks the server for something that the client has not asked for itself. Returns whether it succeeded. */
  async #ask(id: string, method: string, text: string): Promise<boolean> {
    try {
      const own = { text, id, method }
      const { response } = await ask(this.#inner, own, ignored, () => {}, ownLimitMs)
      return response.error === undefined
    } catch (thrown) {
      if (toFailure(thrown).mayHaveLostSession) throw thrown
      return false
    }
  }

  /** Serves a subscription with the stream of the session and `resources/subscribe`. */
  async #subscribe(request: McpRequest, listener: ResponseListener): Promise<Flow> {
    const { initializeResponse, release } = this.#parts
    const filter = readFilter(request)
    if (typeof filter === 'string') {
      return this.#respond(listener, errorText(request.id, codes.invalidParams, filter))
    }
    const wanted = honouredBy(readInitializeResult(initializeResponse).capabilities, filter)
    const subscribed = await Promise.all(
      wanted.uris.map((uri) => {
        const id = ownId()
        const text = requestText(id, 'resources/subscribe', JSON.stringify({ uri }))
        return this.#ask(id, 'resources/subscribe', text)
      }),
    )
    const honoured = { lists: wanted.lists, uris: wanted.uris.filter((_, at) => subscribed[at]) }
    const acknowledge = (what: typeof honoured) => {
      listener.onMessage?.(readMessage(acknowledgement(request.id, what)), undefined)
    }
    const flow = await ResumedStream.listen(this.#inner, {
      onStream: () => acknowledge(honoured),
      onMessage: (message) => {
        if (message.kind === 'request') respondToServer(this.#inner, message)
        if (message.kind !== 'notification') return
        listener.onMessage?.(readMessage(withTag(message, request.id)), undefined)
      },
      onEnd: () => listener.onEnd(),
      onFailure: (failure) => {
        // A server without a stream cannot notify of anything. Many answer 404, although the session exists.
        const { status = 0 } = failure.httpResponse ?? {}
        if (status === 405 || isGoneStatus(status)) acknowledge({ lists: [], uris: [] })
        listener.onFailure(failure)
      },
    })
    const close = () => {
      flow.close()
      release()
    }
    return { pause: () => flow.pause(), resume: () => flow.resume(), close }
  }

  listen(): Promise<Flow> {
    return Promise.reject(new TargetFailure('the modern era has no such stream'))
  }

  end(): Promise<void> {
    return this.#inner.end()
  }
}
