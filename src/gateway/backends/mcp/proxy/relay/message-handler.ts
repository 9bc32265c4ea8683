/** Serves one message of a client. */
import type { McpItem } from '../../../../../ground/exchange/mcp.ts'
import { startCallSpan } from '../../../../proxy/request/tracing.ts'
import { withSupportedVersions } from '../../eras/discover.ts'
import { nameInBody } from '../../eras/headers.ts'
import { type JsonNode, jsonValue, member, textOf } from '../../json/node.ts'
import { codes, errorCodeOf, resultText } from '../../json-rpc.ts'
import { readCursor, withoutItems } from '../../lists.ts'
import type { McpNotification, McpRequest, McpResponse } from '../../message.ts'
import { type ItemMethod, isRemoved, type ListMethod, methodOf } from '../../methods.ts'
import { clientResult, saysUnknown } from '../../results.ts'
import { type Consent, consentText } from '../exchange/consent.ts'
import { itemText, type McpExchange } from '../exchange/mcp-exchange.ts'
import type { ClientResponse, MessageStream } from '../exchange/message-stream.ts'
import { isGoneStatus, SessionNeeded, toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import {
  ask,
  errorResponse,
  type OnAbandon,
  type OutgoingRequest,
  ownLimitMs,
  type ReceivedResponse,
  type Transport,
  withLimit,
} from '../target/transport.ts'
import { hasTimeout } from '../transport/target-request.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { type CallSpan, endSpan } from './call-span.ts'
import { passOn } from './client-notifications.ts'
import { ClientRelay, fieldsForClient } from './client-relay.ts'
import { askDiscover, askLists, type Send } from './fan-out.ts'
import { type LocatedItem, locate, refusal, targetText, unknownItem } from './located-item.ts'
import { askWholeList, listFilter, pinRefusal, versionOf } from './pinned-items.ts'

export class MessageHandler {
  readonly exchange: McpExchange
  readonly upstreams: Upstreams
  readonly #messageStream: MessageStream
  readonly #onAbandon: OnAbandon
  /** Whether the client can resume its stream. */
  #clientResumes = false

  constructor(upstreams: Upstreams, messageStream: MessageStream, onAbandon: OnAbandon) {
    this.upstreams = upstreams
    this.exchange = upstreams.exchange
    this.#messageStream = messageStream
    this.#onAbandon = onAbandon
  }

  /** The only target; undefined if there are several. */
  get #only(): McpTargetEntry | undefined {
    return this.exchange.only
  }

  /**
   * Serves the only request of the client's message on the message stream. Throws or rejects with SessionEnded, a
   * GatewayError, or a TargetFailure of the only target.
   */
  finish(request: McpRequest): Promise<void> | void {
    this.#clientResumes = this.upstreams.era === 'legacy' && this.exchange.sessionId !== undefined
    const response = this.#respond(request)
    if (response instanceof Promise) return response.then((one) => this.#finish(one))
    this.#finish(response)
  }

  #finish(response: ClientResponse): void {
    this.#messageStream.finish(this.#noted(response))
  }

  /** Returns the response to one of several requests. Rejects as `finish` does. */
  async respond(request: McpRequest): Promise<ClientResponse> {
    return this.#noted(await this.#respond(request))
  }

  /** Adds an error to the log entry. */
  #noted(response: ClientResponse): ClientResponse {
    const code = errorCodeOf(response.text)
    if (code !== undefined) this.exchange.noteError(code)
    else this.exchange.noteResult(response.text)
    return response
  }

  #respond(request: McpRequest): Promise<ClientResponse> | ClientResponse {
    const { era } = this.upstreams
    const method = methodOf(request.method, era)
    // A request for an item is described once its item is known.
    if (method.kind !== 'item') this.exchange.describe(request.method)
    if (era === 'modern' && isRemoved(request.method)) return this.#notFound(request)
    switch (method.kind) {
      case 'discover':
        return this.#discover(request)
      case 'list':
        return this.#list(request, method)
      case 'item':
        return this.#item(request, method)
      case 'complete':
        return this.#complete(request)
      case 'level':
        return this.#everywhere(request)
      case 'ping':
        return this.#only === undefined
          ? { text: resultText(request.id, '{}') }
          : this.#ask(this.#only, request)
      default:
        return this.#askOnly(request, method.kind === 'other')
    }
  }

  /**
   * Passes on a request that only a single server can respond to. If the method is unknown and there are rules,
   * the request is refused, because rules cannot be applied to it.
   */
  #askOnly(request: McpRequest, isUnknown: boolean): Promise<ClientResponse> | ClientResponse {
    const only = this.#only
    const isGuarded = isUnknown && only !== undefined && this.exchange.rulesOf(only) !== undefined
    if (only !== undefined && !isGuarded) {
      const name = nameInBody(request, this.upstreams.era)
      return this.#ask(only, { ...request, name })
    }
    if (isGuarded) {
      this.exchange.noteRefusal(only, 'the rules cannot be applied to a method that is not known')
    }
    return this.#notFound(request)
  }

  #notFound(request: McpRequest): ClientResponse {
    const status = this.upstreams.era === 'modern' ? 404 : undefined
    return { ...refusal(request, codes.methodNotFound, 'Method not found'), status }
  }

  async #discover(request: McpRequest): Promise<ClientResponse> {
    const only = this.#only
    const send: Send = (entry, one) => this.#sendJoined(entry, one)
    if (only === undefined) return { text: await askDiscover(this.upstreams, send, request) }
    const { response, status } = await this.#send(only, request)
    return { text: withSupportedVersions(response), status }
  }

  // --- lists ---

  async #list(request: McpRequest, method: ListMethod): Promise<ClientResponse> {
    const only = this.#only
    if (only !== undefined) {
      const { response, eventFields, status } = await this.#send(only, request)
      const isPage = member(request.params, 'cursor') !== undefined
      const keeps = listFilter(this.exchange, only, method, response, isPage)
      return {
        text: keeps === undefined ? response.text : withoutItems(method, response, keeps),
        eventFields: fieldsForClient(this.upstreams, only, eventFields),
        status: this.#statusForClient(status),
      }
    }
    const cursor = textOf(request.text, member(request.params, 'cursor'))
    const cursors = cursor === undefined ? undefined : readCursor(cursor)
    if (cursor !== undefined && cursors === undefined) {
      return refusal(request, codes.invalidParams, 'Invalid cursor')
    }
    const send: Send = (entry, one) => this.#sendJoined(entry, one)
    return { text: await askLists(this.upstreams, send, request, method, cursors) }
  }

  // --- items ---

  #item(
    request: McpRequest,
    { key, type }: Pick<ItemMethod, 'key' | 'type'>,
    path = 'params',
    parent = request.params,
  ): Promise<ClientResponse> | ClientResponse {
    const node = member(parent, key)
    const called = textOf(request.text, node)
    if (node !== undefined && called !== undefined) {
      return this.#atItem(request, node, called, { key, type })
    }
    this.exchange.describe(request.method)
    return refusal(request, codes.invalidParams, `${path}.${key} must be a string`)
  }

  /**
   * Passes a request to the target of its item. `called` is the item's name for clients, `node` its
   * position.
   */
  #atItem(
    request: McpRequest,
    node: JsonNode,
    called: string,
    { key, type }: Pick<ItemMethod, 'key' | 'type'>,
  ): Promise<ClientResponse> | ClientResponse {
    const found = locate(this.exchange, called, key)
    if (found === undefined) {
      this.exchange.describe(request.method)
      return unknownItem(request, type, called)
    }
    const { entry, name } = found
    const args = member(request.params, 'arguments')
    const item: McpItem = { type, target: entry.target.name, name }
    const isRead = args !== undefined && this.exchange.needsArguments(entry)
    const value = isRead ? jsonValue(request.text, args) : undefined
    if (!this.exchange.mayUse(entry, request.method, item, value)) {
      return unknownItem(request, type, called)
    }
    const located = { entry, item, node, called }
    const refused = pinRefusal(this.exchange, entry, item, (method) =>
      this.#askList(entry, request, method),
    )
    return refused instanceof Promise
      ? refused.then(
          (why) => this.#askItem(request, located, why),
          (thrown) => this.#failedResponse(entry, request, thrown),
        )
      : this.#askItem(request, located, refused)
  }

  #askList(entry: McpTargetEntry, request: McpRequest, method: ListMethod): Promise<void> {
    const send = (one: OutgoingRequest) => this.#send(entry, one)
    return askWholeList(request, method, send, (response, isPage) => {
      listFilter(this.exchange, entry, method, response, isPage)
    })
  }

  #askItem(
    request: McpRequest,
    { entry, item, node, called }: LocatedItem,
    refused: string | undefined,
  ): Promise<ClientResponse> | ClientResponse {
    const { type, name } = item
    const { id, method } = request
    this.exchange.noteVersion(versionOf(entry, item))
    if (refused !== undefined) {
      this.exchange.noteRefusal(entry, `${method} of ${itemText(item)}: ${refused}`)
      return unknownItem(request, type, called)
    }
    const isOnly = this.#only !== undefined
    const asked = { ...targetText(request, node, isOnly ? undefined : name), id, method, name }
    if (type === 'resource') this.#keepSubscription(method, entry, name)
    const isGuarded = this.exchange.rulesOf(entry) !== undefined || entry.target.pinning === 'Block'
    if (!isGuarded) return this.#ask(entry, asked)
    // An item that is refused must look exactly like one that the server does not have.
    return this.#ask(entry, asked, (response) => {
      return saysUnknown(response, name) && unknownItem(request, type, called)
    })
  }

  /** Keeps what a legacy client subscribes to, for sessions at the server that are begun later. */
  #keepSubscription(method: string, { target }: McpTargetEntry, uri: string): void {
    const isSubscribed = method === 'resources/subscribe'
    const { sessionId, shared } = this.exchange
    if (sessionId === undefined || (!isSubscribed && method !== 'resources/unsubscribe')) return
    shared.settings.change(sessionId, { target: target.name, uri, isSubscribed })
  }

  #complete(request: McpRequest): Promise<ClientResponse> | ClientResponse {
    const ref = member(request.params, 'ref')
    switch (textOf(request.text, member(ref, 'type'))) {
      case 'ref/prompt':
        return this.#item(request, { key: 'name', type: 'prompt' }, 'params.ref', ref)
      case 'ref/resource':
        return this.#item(request, { key: 'uri', type: 'resource' }, 'params.ref', ref)
    }
    const message = 'params.ref.type must be ref/prompt or ref/resource'
    return refusal(request, codes.invalidParams, message)
  }

  /** Sends the request to all servers that support it. Succeeds if at least one server does. */
  async #everywhere(request: McpRequest): Promise<ClientResponse> {
    const { sessionId, shared } = this.exchange
    const logLevel = textOf(request.text, member(request.params, 'level'))
    if (sessionId !== undefined && logLevel !== undefined) {
      shared.settings.change(sessionId, { logLevel })
    }
    if (this.#only !== undefined) return this.#ask(this.#only, request)
    const able = this.exchange.backend.targets.filter(({ target }) => {
      return this.upstreams.can(target.name)?.includes('logging') ?? true
    })
    const all = await Promise.allSettled(able.map((entry) => this.#sendJoined(entry, request)))
    const done = all.filter(
      (one) => one.status === 'fulfilled' && one.value.response.error === undefined,
    )
    if (done.length > 0) return { text: resultText(request.id, '{}') }
    const first = all.find((one) => one.status === 'fulfilled')
    if (first !== undefined) return { text: first.value.response.text }
    return refusal(request, codes.internal, 'no server can do that')
  }

  // --- one target ---

  /** `change` may replace the response. */
  #ask(
    entry: McpTargetEntry,
    request: OutgoingRequest,
    change?: (response: McpResponse) => ClientResponse | false,
  ): Promise<ClientResponse> {
    return this.#send(entry, request).then(
      (received) => change?.(received.response) || this.#responseFrom(entry, received),
      (thrown) => this.#failedResponse(entry, request, thrown),
    )
  }

  #responseFrom(
    entry: McpTargetEntry,
    { response, eventFields, status }: ReceivedResponse,
  ): ClientResponse {
    const isOnly = this.#only !== undefined
    return {
      text: isOnly ? response.text : clientResult(entry.target.name, response),
      bytes: isOnly ? response.bytes : undefined,
      eventFields: fieldsForClient(this.upstreams, entry, eventFields),
      status: this.#statusForClient(status),
    }
  }

  /** The status of an error is that of the only server. 404 would end the session of a legacy client. */
  #statusForClient(status: number | undefined): number | undefined {
    if (this.upstreams.era === 'modern') return status
    return this.#only === undefined || isGoneStatus(status ?? 200) ? undefined : status
  }

  /** Reports to the client that one of several targets gave no response. */
  #failedResponse(
    entry: McpTargetEntry,
    request: OutgoingRequest,
    thrown: unknown,
  ): ClientResponse {
    const failure = toFailure(thrown)
    if (failure.consent !== undefined) return this.#askUser(request, failure.consent)
    if (this.#only !== undefined) throw failure
    if (failure.isResumable && this.upstreams.era === 'legacy') throw failure
    const own = failure instanceof SessionNeeded ? errorResponse(failure, request.id) : undefined
    if (own !== undefined) return { text: own.text, status: failure.httpResponse?.status }
    this.exchange.noteRefusal(entry, `target ${entry.target.name} failed: ${failure.message}`)
    return refusal(request, codes.internal, `${entry.target.name}: ${failure.message}`)
  }

  #askUser(request: OutgoingRequest, consent: Consent): ClientResponse {
    const { era, capabilities } = this.upstreams
    return { text: consentText(request, era, capabilities, consent) }
  }

  /** Sends a request to a target. Rejects as `finish` does. */
  #send(entry: McpTargetEntry, request: OutgoingRequest): Promise<ReceivedResponse> {
    return this.upstreams.use(entry, (transport) => {
      if (this.#clientResumes) transport.clientResumes = true
      return this.#askOver(entry, transport, request)
    })
  }

  /**
   * Sends one of several requests whose responses are joined. If no timeout is configured, the gateway has one, so
   * that a silent target does not hold up the others.
   */
  #sendJoined(entry: McpTargetEntry, request: OutgoingRequest): Promise<ReceivedResponse> {
    const closes: (() => void)[] = []
    const onAbandon: OnAbandon = (close) => {
      closes.push(close)
      this.#onAbandon(close)
    }
    const sent = this.upstreams.use(entry, (transport) =>
      this.#askOver(entry, transport, request, onAbandon),
    )
    return withLimit(sent, hasTimeout(this.exchange, entry) ? 0 : ownLimitMs, () => {
      for (const close of closes) close()
    })
  }

  #askOver(
    entry: McpTargetEntry,
    transport: Transport,
    request: OutgoingRequest,
    onAbandon = this.#onAbandon,
  ): Promise<ReceivedResponse> {
    const span = this.#startSpan(entry)
    if (span !== undefined) transport.traceparent = span.header
    const relay = new ClientRelay(this.upstreams, entry, this.#messageStream)
    const asked = ask(transport, request, relay, onAbandon)
    return span === undefined ? asked : endSpan(span, asked)
  }

  #startSpan({ target }: McpTargetEntry): CallSpan | undefined {
    const { context, details } = this.exchange
    if (context.trace === undefined) return undefined
    const { method = '', item } = details ?? {}
    const name =
      item === undefined ? `${method} ${target.name}` : `${method} ${target.name}_${item}`
    return startCallSpan(context, name, [
      ['mcp.method.name', method],
      ['mcp.target', target.name],
    ])
  }

  /** Passes on a notification or response. Rejects with SessionEnded, or if the only target refuses. */
  async notify(message: McpNotification | McpResponse): Promise<void> {
    if (message.kind === 'notification') this.exchange.describe(message.method)
    // Servers of a stateless backend do not know about earlier requests, so there is nothing to notify.
    if (!this.exchange.backend.isStateless) await passOn(this.upstreams, message)
  }
}
