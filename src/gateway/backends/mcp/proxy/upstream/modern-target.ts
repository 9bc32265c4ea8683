/** A modern server for a legacy client: the gateway answers what belongs to sessions. */

import { nameInBody } from '../../eras/headers.ts'
import { toModernRequest } from '../../eras/legacy-to-modern.ts'
import { sessionFilter } from '../../eras/subscriptions.ts'
import { modernVersion } from '../../eras/versions.ts'
import { member, rawOf, textOf } from '../../json/node.ts'
import { type McpRequest, readMessage } from '../../message.ts'
import { isRemoved, methodOf } from '../../methods.ts'
import { codes, errorText, requestText, resultText } from '../../responses.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { newSessionId, type SessionState } from '../session/session-state.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { Flow, OutgoingMessage, Transport } from '../target/transport.ts'
import { modernWire, StreamableTransport } from '../transport/streamable.ts'
import { MultiRoundTripCall } from './multi-round-trip-call.ts'
import { SessionSubscription } from './session-subscription.ts'
import { findOffer } from './target-eras.ts'

const idle: Flow = { pause: () => {}, resume: () => {}, close: () => {} }

export class ModernTarget implements Transport {
  readonly era = 'legacy'
  readonly #exchange: McpExchange
  readonly #entry: McpTargetEntry
  readonly #state: SessionState
  readonly #wire: StreamableTransport

  constructor(exchange: McpExchange, entry: McpTargetEntry, state: SessionState) {
    this.#exchange = exchange
    this.#entry = entry
    this.#state = state
    this.#wire = new StreamableTransport(exchange, entry, modernWire(modernVersion))
  }

  get endpoint(): string | undefined {
    return this.#wire.endpoint
  }

  set traceparent(value: string | undefined) {
    this.#wire.traceparent = value
  }

  get #bridge() {
    return this.#exchange.shared.bridge
  }

  /** Key of a request in this session. `id` is JSON. */
  #key(id: string): string {
    return `${this.#state.id} ${this.#entry.target.name} ${id}`
  }

  post({ text }: OutgoingMessage, listener: ResponseListener): Promise<Flow> {
    const message = readMessage(text)
    switch (message.kind) {
      case 'response':
        if (message.id !== undefined) this.#bridge.respond(this.#key(message.id), text)
        break
      case 'notification': {
        const id = member(message.params, 'requestId')
        const isCancelled = message.method === 'notifications/cancelled' && id !== undefined
        if (isCancelled) this.#bridge.cancel(this.#key(rawOf(text, id)))
        break
      }
      case 'request': {
        const own = this.#ownResponse(message)
        if (own === undefined) return this.#ask(message, listener)
        listener.onMessage?.(readMessage(own), undefined)
      }
    }
    listener.onEnd()
    return Promise.resolve(idle)
  }

  /** Returns the response to a request that the modern era does not have; undefined for others. */
  #ownResponse({ id, method, text, params }: McpRequest): string | undefined {
    const uri = textOf(text, member(params, 'uri'))
    switch (method) {
      case 'ping':
        return resultText(id, '{}')
      case 'logging/setLevel': {
        const logLevel = textOf(text, member(params, 'level'))
        if (logLevel === undefined) return errorText(id, codes.invalidParams, 'level is missing')
        this.#bridge.change(this.#state.id, { logLevel })
        return resultText(id, '{}')
      }
      case 'resources/subscribe':
      case 'resources/unsubscribe': {
        if (uri === undefined) return errorText(id, codes.invalidParams, 'uri is missing')
        const isSubscribed = method === 'resources/subscribe'
        const change = { resource: this.#resource(uri), isSubscribed }
        const isDone = this.#bridge.change(this.#state.id, change)
        if (isDone) return resultText(id, '{}')
        return errorText(id, codes.internal, 'the session has too many subscriptions')
      }
    }
    const isUnknown = isRemoved(method) || methodOf(method, 'modern').kind === 'task'
    return isUnknown ? errorText(id, codes.methodNotFound, 'Method not found') : undefined
  }

  /** Targets have no spaces in their names. */
  #resource(uri: string): string {
    return `${this.#entry.target.name} ${uri}`
  }

  /** Returns the URIs at this target to which the session has subscribed. */
  #uris(): string[] {
    const prefix = this.#resource('')
    const all = [...(this.#bridge.settings(this.#state.id)?.resources ?? [])]
    return all.flatMap((one) => (one.startsWith(prefix) ? [one.slice(prefix.length)] : []))
  }

  async #ask(request: McpRequest, listener: ResponseListener): Promise<Flow> {
    const call = new MultiRoundTripCall(request, listener, {
      bridge: this.#bridge,
      key: (id) => this.#key(id),
      send: (id, one, round) => {
        const { hello, id: session } = this.#state
        const logLevel = this.#bridge.settings(session)?.logLevel
        const text = toModernRequest(request, id, hello, logLevel, round)
        const name = nameInBody(request, 'modern')
        return this.#wire.post({ text, method: request.method, name }, one)
      },
    })
    await call.begin()
    return call
  }

  /** Opens a subscription for all changes of which the session may be notified. */
  async listen(listener: ResponseListener): Promise<Flow> {
    const stream = new SessionSubscription(listener, async (one) => {
      const offer = await findOffer(this.#exchange, this.#entry, () => {})
      const filter = sessionFilter(offer?.capabilities ?? {}, this.#uris())
      if (filter === undefined) return undefined
      const id = JSON.stringify(`sluice/listen ${newSessionId()}`)
      const plain = requestText(id, 'subscriptions/listen', `{"notifications":${filter}}`)
      const request = readMessage(plain)
      if (request.kind !== 'request') return undefined
      const { method } = request
      const text = toModernRequest(request, id, this.#state.hello, undefined)
      return this.#wire.post({ text, method, isLong: true }, one)
    })
    const stopWatching = this.#bridge.watch(this.#state.id, () => stream.reopen())
    await stream.open()
    listener.onStream?.()
    const close = () => {
      stopWatching()
      stream.close()
    }
    return { pause: () => stream.pause(), resume: () => stream.resume(), close }
  }

  end(): Promise<void> {
    return Promise.resolve()
  }
}
