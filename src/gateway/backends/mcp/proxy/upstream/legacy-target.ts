/** A legacy server for a modern client: the gateway holds the session that the client does not have. */

import { readInitializeResult } from '../../eras/initialize.ts'
import { discoverResponseOf, isLogLevel } from '../../eras/modern-to-legacy.ts'
import {
  acknowledgement,
  honouredBy,
  readFilter,
  withSubscriptionId,
} from '../../eras/subscriptions.ts'
import { codes, errorText } from '../../json-rpc.ts'
import { type McpRequest, readMessage, readRequest } from '../../message.ts'
import { passResponse, type ResponseListener } from '../target/response-reader.ts'
import { isGoneStatus, toFailure } from '../target/target-failure.ts'
import {
  askQuietly,
  type Flow,
  gatewayRequest,
  idleFlow,
  type OutgoingMessage,
  type SessionTransport,
  type Transport,
} from '../target/transport.ts'
import { ResumedStream } from '../transport/resumed-stream.ts'
import {
  InputRequiredCall,
  type LegacyTargetParts,
  respondToServer,
} from './input-required-call.ts'

export class LegacyTarget implements Transport {
  readonly era = 'modern'
  readonly #inner: SessionTransport
  readonly #parts: LegacyTargetParts

  constructor(inner: SessionTransport, parts: LegacyTargetParts) {
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
    const request = readRequest(text)
    if (request === undefined) {
      listener.onEnd()
      return idleFlow
    }
    const { logLevel } = this.#parts.envelope
    if (logLevel !== undefined && !isLogLevel(logLevel)) {
      const message = `Invalid log level: ${logLevel}`
      return this.#respond(listener, errorText(request.id, codes.invalidParams, message))
    }
    if (request.method === 'server/discover') {
      const { initializeResponse } = this.#parts
      return this.#respond(listener, discoverResponseOf(request.id, initializeResponse))
    }
    if (request.method === 'subscriptions/listen') return this.#subscribe(request, listener)
    // Legacy servers have one level for a session, which may fail without an effect on the request.
    if (logLevel !== undefined) await this.#ask('logging/setLevel', { level: logLevel })
    const call = new InputRequiredCall(request, listener, this.#inner, this.#parts)
    await call.begin()
    return call
  }

  #respond(listener: ResponseListener, text: string): Flow {
    passResponse(listener, text)
    this.#parts.release()
    return idleFlow
  }

  /** Asks the server for something that the client has not asked for itself. Returns whether it succeeded. */
  async #ask(method: string, params: object): Promise<boolean> {
    try {
      const request = gatewayRequest(method, JSON.stringify(params))
      return (await askQuietly(this.#inner, request)).response.error === undefined
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
      wanted.uris.map((uri) => this.#ask('resources/subscribe', { uri })),
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
        listener.onMessage?.(readMessage(withSubscriptionId(message, request.id)), undefined)
      },
      onEnd: () => listener.onEnd(),
      onFailure: (failure) => {
        // A server without a stream cannot notify of anything. Many respond with 404, although the session exists.
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
}
