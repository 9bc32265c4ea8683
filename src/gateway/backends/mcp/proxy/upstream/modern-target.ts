/** A modern server for a legacy client: the gateway serves what belongs to sessions. */

import { nameInBody } from '../../eras/headers.ts'
import { toModernRequest } from '../../eras/legacy-to-modern.ts'
import { sessionFilter } from '../../eras/subscriptions.ts'
import { modernVersion } from '../../eras/versions.ts'
import { gatewayRequestId, newId } from '../../ids.ts'
import { member, rawOf, textOf } from '../../json/node.ts'
import { codes, errorText, requestText, resultText } from '../../json-rpc.ts'
import { type McpRequest, readMessage, readRequest } from '../../message.ts'
import { isRemoved, methodOf } from '../../methods.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { SessionState } from '../session/session-state.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import {
  type Flow,
  idleFlow,
  type OutgoingMessage,
  type SessionTransport,
  type Transport,
} from '../target/transport.ts'
import { modernTransport } from './modern-transport.ts'
import { MultiRoundTripCall } from './multi-round-trip-call.ts'
import { SessionSubscription } from './session-subscription.ts'
import { findDiscoverResult } from './target-eras.ts'

export class ModernTarget implements SessionTransport {
  readonly era = 'legacy'
  readonly #exchange: McpExchange
  readonly #entry: McpTargetEntry
  readonly #state: SessionState
  readonly #wire: Transport

  constructor(exchange: McpExchange, entry: McpTargetEntry, state: SessionState) {
    this.#exchange = exchange
    this.#entry = entry
    this.#state = state
    this.#wire = modernTransport(exchange, entry, modernVersion)
  }

  get endpoint(): string | undefined {
    return this.#wire.endpoint
  }

  set traceparent(value: string | undefined) {
    this.#wire.traceparent = value
  }

  /** Key of a request in this session. `id` is JSON. */
  #key(id: string): string {
    return `${this.#state.id} ${this.#entry.target.name} ${id}`
  }

  post({ text }: OutgoingMessage, listener: ResponseListener): Promise<Flow> {
    const message = readMessage(text)
    const { calls } = this.#exchange.shared
    switch (message.kind) {
      case 'response':
        if (message.id !== undefined) calls.respond(this.#key(message.id), text)
        break
      case 'notification': {
        const id = member(message.params, 'requestId')
        const isCancelled = message.method === 'notifications/cancelled' && id !== undefined
        if (isCancelled) calls.cancel(this.#key(rawOf(text, id)))
        break
      }
      case 'request': {
        const own = this.#ownResponse(message)
        if (own === undefined) return this.#ask(message, listener)
        listener.onMessage?.(readMessage(own), undefined)
      }
    }
    listener.onEnd()
    return Promise.resolve(idleFlow)
  }

  /** Returns the response to a request that the modern era does not have; undefined for others. */
  #ownResponse({ id, method, text, params }: McpRequest): string | undefined {
    const { settings } = this.#exchange.shared
    switch (method) {
      case 'ping':
        return resultText(id, '{}')
      case 'logging/setLevel': {
        const logLevel = textOf(text, member(params, 'level'))
        if (logLevel === undefined) return errorText(id, codes.invalidParams, 'level is missing')
        settings.change(this.#state.id, { logLevel })
        return resultText(id, '{}')
      }
      case 'resources/subscribe':
      case 'resources/unsubscribe': {
        const uri = textOf(text, member(params, 'uri'))
        if (uri === undefined) return errorText(id, codes.invalidParams, 'uri is missing')
        const isSubscribed = method === 'resources/subscribe'
        const change = { target: this.#entry.target.name, uri, isSubscribed }
        const isDone = settings.change(this.#state.id, change)
        if (isDone) return resultText(id, '{}')
        return errorText(id, codes.internal, 'the session has too many subscriptions')
      }
    }
    const isUnknown = isRemoved(method) || methodOf(method, 'modern').kind === 'task'
    return isUnknown ? errorText(id, codes.methodNotFound, 'Method not found') : undefined
  }

  async #ask(request: McpRequest, listener: ResponseListener): Promise<Flow> {
    const { calls, settings } = this.#exchange.shared
    const call = new MultiRoundTripCall(request, listener, {
      calls,
      key: (id) => this.#key(id),
      send: (id, one, round) => {
        const { hello, id: session } = this.#state
        const logLevel = settings.logLevel(session)
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
    const { settings } = this.#exchange.shared
    const { id: session } = this.#state
    const stream = new SessionSubscription(listener, async (one) => {
      const offer = await findDiscoverResult(this.#exchange, this.#entry, () => {})
      const uris = settings.uris(session, this.#entry.target.name)
      const filter = sessionFilter(offer?.capabilities ?? {}, uris)
      if (filter === undefined) return undefined
      const id = gatewayRequestId(`listen ${newId()}`)
      const method = 'subscriptions/listen'
      const request = readRequest(requestText(id, method, `{"notifications":${filter}}`))
      if (request === undefined) return undefined
      const text = toModernRequest(request, id, this.#state.hello, undefined)
      return this.#wire.post({ text, method, isLong: true }, one)
    })
    stream.onClose = settings.watch(session, () => stream.reopen())
    await stream.open()
    listener.onStream?.()
    return stream
  }

  end(): Promise<void> {
    return Promise.resolve()
  }
}
