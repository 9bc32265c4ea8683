/** Serves one message of a client. */
import { isInParts } from '../../../../../ground/base/buffers.ts'
import type { McpItem, McpItemType } from '../../../../../ground/exchange/mcp.ts'
import type { PlacedGuard } from '../../../ai/policy/bind-guard.ts'
import { withSupportedVersions } from '../../eras/discover.ts'
import { nameInBody } from '../../eras/headers.ts'
import { type JsonNode, jsonValue, member, textOf } from '../../json/node.ts'
import { codes, resultText } from '../../json-rpc.ts'
import { presentItems, readCursor } from '../../lists.ts'
import type { McpNotification, McpRequest, McpResponse } from '../../message.ts'
import {
  completedItem,
  type ItemMethod,
  isRemoved,
  type ListMethod,
  type McpMethod,
  methodOf,
  toolsMethod,
} from '../../methods.ts'
import { isSearch } from '../../tool-search/tools.ts'
import { guardInstructions, guardList } from '../calls/guard-definitions.ts'
import { guardResponse } from '../calls/guard-messages.ts'
import { chainsFor, serveChecked } from '../calls/joined-processors.ts'
import { type LocatedItem, refusal, unknownItem } from '../calls/located-item.ts'
import { itemText, type McpExchange } from '../exchange/mcp-exchange.ts'
import type { ClientResponse, MessageStream } from '../exchange/message-stream.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { OnAbandon, OutgoingRequest, ReceivedResponse } from '../target/transport.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { calledTool } from './called-tool.ts'
import { passOn } from './client-notifications.ts'
import { fieldsForClient } from './client-relay.ts'
import { failedResponse, responseFrom, statusForClient } from './client-responses.ts'
import { askDiscover, askLists, type Send } from './fan-out.ts'
import { learnNames } from './learn-names.ts'
import {
  askWholeList,
  listFilter,
  mayWithhold,
  versionOf,
  type Withheld,
  withheldReason,
} from './pinned-items.ts'
import { SearchedTools } from './searched-tools.ts'
import { type ItemSending, sendItemRequest, unknownItemOf } from './send-item-request.ts'
import { askEverywhere, keepLevel, keepSubscription } from './session-requests.ts'
import { TargetSender } from './target-sender.ts'

const paramsOf = ({ params }: McpRequest): JsonNode | undefined => params

export class MessageHandler implements ItemSending {
  readonly exchange: McpExchange
  readonly upstreams: Upstreams
  readonly messageStream: MessageStream
  readonly onAbandon: OnAbandon
  readonly sender: TargetSender

  constructor(upstreams: Upstreams, messageStream: MessageStream, onAbandon: OnAbandon) {
    this.upstreams = upstreams
    this.exchange = upstreams.exchange
    this.messageStream = messageStream
    this.onAbandon = onAbandon
    this.sender = new TargetSender(upstreams, messageStream, onAbandon)
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
    this.sender.clientResumes =
      this.upstreams.era === 'legacy' && this.exchange.sessionId !== undefined
    const response = this.#respond(request)
    if (response instanceof Promise) return response.then((one) => this.#finish(one))
    this.#finish(response)
  }

  #finish(response: ClientResponse): void {
    this.messageStream.finish(this.#noted(response))
  }

  /** Returns the response to one of several requests. Rejects as `finish` does. */
  async respond(request: McpRequest): Promise<ClientResponse> {
    return this.#noted(await this.#respond(request))
  }

  /** Adds an error to the log entry. */
  #noted(response: ClientResponse): ClientResponse {
    // The text of a list in parts need not be made: it is no error, and no result of a tool.
    if (!isInParts(response.bytes)) this.exchange.noteResponse(response.text)
    return response
  }

  #respond(request: McpRequest): Promise<ClientResponse> | ClientResponse {
    const method = methodOf(request.method, this.upstreams.era)
    // Requests for items pass the processors when their targets are known.
    if (method.kind === 'item' || method.kind === 'complete') return this.#serve(request, method)
    return this.#serveChecked(request, (one) => this.#serve(one, method))
  }

  /** Serves a request between the processors of all targets. */
  #serveChecked(
    request: McpRequest,
    serve: (request: McpRequest) => Promise<ClientResponse> | ClientResponse,
  ): Promise<ClientResponse> | ClientResponse {
    const chains = chainsFor(this.exchange, this.upstreams.era, request.method)
    if (chains.length === 0) return serve(request)
    this.exchange.describe(request.method)
    this.sender.clientResumes = false
    return serveChecked(chains, request, serve)
  }

  #serve(request: McpRequest, method: McpMethod): Promise<ClientResponse> | ClientResponse {
    const { era } = this.upstreams
    // A request for an item is described once its item is known.
    if (method.kind !== 'item') this.exchange.describe(request.method)
    if (era === 'modern' && isRemoved(request.method)) return this.#notFound(request)
    switch (method.kind) {
      case 'discover':
        return this.#discover(request)
      case 'list':
        return this.#list(request, method)
      case 'item':
        return this.exchange.backend.toolSearch === undefined
          ? this.#item(request, method)
          : this.#searchedItem(request, method)
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
    const isGuarded = isUnknown && only !== undefined && this.exchange.isGuarded(only)
    if (only !== undefined && !isGuarded) {
      const name = nameInBody(request, this.upstreams.era)
      const asked = { ...request, name }
      const guards = this.exchange.callPolicyOf(only)?.responseGuards ?? []
      return guards.length === 0
        ? this.#ask(only, asked)
        : this.#settle(only, asked, this.#guardTask(only, guards, request, asked))
    }
    if (isGuarded) {
      this.exchange.noteRefusal(only, 'the rules cannot be applied to a method that is not known')
      this.exchange.noteRefusedBy('rules')
    }
    return this.#notFound(request)
  }

  #notFound(request: McpRequest): ClientResponse {
    const status = this.upstreams.era === 'modern' ? 404 : undefined
    return { ...refusal(request, codes.methodNotFound, 'Method not found'), status }
  }

  async #discover(request: McpRequest): Promise<ClientResponse> {
    const only = this.#only
    const send: Send = (entry, one) => this.sender.sendJoined(entry, one)
    if (only === undefined) return { text: await askDiscover(this.upstreams, send, request) }
    const { response, status } = await this.sender.send(only, request)
    const guarded = await guardInstructions(this.exchange, only, response)
    return { text: withSupportedVersions(guarded), status }
  }

  // --- lists ---

  /** Undefined unless the client searches for tools. */
  get #searched(): SearchedTools | undefined {
    const { toolSearch } = this.exchange.backend
    if (toolSearch === undefined) return undefined
    const send: Send = (entry, one) => this.sender.sendJoined(entry, one)
    return new SearchedTools(this.upstreams, send, toolSearch)
  }

  async #list(request: McpRequest, method: ListMethod): Promise<ClientResponse> {
    const searched = method === toolsMethod ? this.#searched : undefined
    if (searched !== undefined) return searched.list(request)
    const only = this.#only
    if (only !== undefined) {
      const { response: own, eventFields, status } = await this.sender.send(only, request)
      const isPage = member(request.params, 'cursor') !== undefined
      const keeps = listFilter(this.exchange, only, method, own, isPage)
      const response = await guardList(this.exchange, only, method, own)
      const { view } = this.exchange
      const isShown = keeps === undefined && !view.isChanged(only, method.member)
      const present = view.presenter(only, method.member, keeps)
      return {
        text: isShown ? response.text : presentItems(method, response, present),
        eventFields: fieldsForClient(this.upstreams, only, request.id, eventFields),
        status: statusForClient(this.upstreams, status),
      }
    }
    const cursor = textOf(request.text, member(request.params, 'cursor'))
    const cursors = cursor === undefined ? undefined : readCursor(cursor)
    if (cursor !== undefined && cursors === undefined) {
      return refusal(request, codes.invalidParams, 'Invalid cursor')
    }
    const send: Send = (entry, one) => this.sender.sendJoined(entry, one)
    return askLists(this.upstreams, send, request, method, cursors)
  }

  // --- items ---

  /** Serves a request for an item if the client searches for tools. */
  #searchedItem(request: McpRequest, method: ItemMethod): Promise<ClientResponse> | ClientResponse {
    const called = textOf(request.text, member(request.params, 'name'))
    const searched = isSearch(request.method, called) ? this.#searched : undefined
    if (searched === undefined) return this.#item(calledTool(request), method)
    this.exchange.describe(request.method)
    return this.#serveChecked(request, (one) => searched.find(one))
  }

  #item(
    request: McpRequest,
    { key, type }: Pick<ItemMethod, 'key' | 'type'>,
    path = 'params',
    parentIn = paramsOf,
  ): Promise<ClientResponse> | ClientResponse {
    const nodeIn = (one: McpRequest) => member(parentIn(one), key)
    const called = textOf(request.text, nodeIn(request))
    if (called !== undefined) return this.#atItem(request, nodeIn, called, type)
    this.exchange.describe(request.method)
    return refusal(request, codes.invalidParams, `${path}.${key} must be a string`)
  }

  /** Passes a request to the target of its item. `called` is the item's name for clients. */
  #atItem(
    request: McpRequest,
    nodeIn: LocatedItem['nodeIn'],
    called: string,
    type: McpItemType,
  ): Promise<ClientResponse> | ClientResponse {
    const unknown = this.exchange.view.unknownFor(type, called)
    return unknown.length === 0
      ? this.#atFound(request, nodeIn, called, type)
      : this.#atLearned(unknown, request, nodeIn, called, type)
  }

  /** Does the same after asking for the lists of the targets that may have the item. */
  #atLearned(
    unknown: readonly McpTargetEntry[],
    request: McpRequest,
    nodeIn: LocatedItem['nodeIn'],
    called: string,
    type: McpItemType,
  ): Promise<ClientResponse> {
    const ask = (entry: McpTargetEntry, method: ListMethod) => this.askList(entry, request, method)
    return learnNames(this.upstreams, unknown, type, ask).then(() =>
      this.#atFound(request, nodeIn, called, type),
    )
  }

  #atFound(
    request: McpRequest,
    nodeIn: LocatedItem['nodeIn'],
    called: string,
    type: McpItemType,
  ): Promise<ClientResponse> | ClientResponse {
    const found = this.exchange.view.locate(type, called)
    if (found === undefined || found === 'clash') {
      this.exchange.describe(request.method)
      return unknownItem(request, type, called, found === 'clash')
    }
    const { entry, name } = found
    const node = member(request.params, 'arguments')
    const item: McpItem = { type, target: entry.target.name, name }
    const isRead = node !== undefined && this.exchange.needsArguments(entry)
    const args = isRead ? jsonValue(request.text, node) : undefined
    if (!this.exchange.mayUse(entry, request.method, item, args)) {
      return unknownItem(request, type, called)
    }
    const located = { entry, item, nodeIn, called, args }
    return mayWithhold(this.exchange, entry, type)
      ? this.#askUnlessWithheld(request, located)
      : this.#askItem(request, located)
  }

  #askUnlessWithheld(
    request: McpRequest,
    located: LocatedItem,
  ): Promise<ClientResponse> | ClientResponse {
    const { entry, item } = located
    const withheld = withheldReason(this.exchange, entry, item, (method) =>
      this.askList(entry, request, method),
    )
    return withheld instanceof Promise
      ? withheld.then(
          (why) => this.#askItem(request, located, why),
          (thrown) => failedResponse(this.upstreams, entry, request, thrown),
        )
      : this.#askItem(request, located, withheld)
  }

  /** Asks a target for the whole of a list. */
  askList(entry: McpTargetEntry, request: McpRequest, method: ListMethod): Promise<void> {
    const send = (one: OutgoingRequest) => this.sender.send(entry, one)
    return askWholeList(request, method, send, (response, isPage) => {
      listFilter(this.exchange, entry, method, response, isPage)
    })
  }

  #askItem(
    request: McpRequest,
    located: LocatedItem,
    withheld?: Withheld,
  ): Promise<ClientResponse> | ClientResponse {
    const { entry, item, called } = located
    const { type, name } = item
    this.exchange.noteVersion(versionOf(entry, item))
    if (withheld !== undefined) {
      this.exchange.noteRefusal(entry, `${request.method} of ${itemText(item)}: ${withheld.text}`)
      this.exchange.noteRefusedBy(withheld.by)
      return unknownItem(request, type, called)
    }
    if (type === 'resource') keepSubscription(this.exchange, request.method, entry, name)
    // An item that is refused must look exactly like one that the server does not have.
    const change = this.exchange.withholdsItems(entry) ? unknownItemOf(request, located) : undefined
    return this.#settle(entry, request, sendItemRequest(this, request, located), change)
  }

  #complete(request: McpRequest): Promise<ClientResponse> | ClientResponse {
    const refIn = ({ params }: McpRequest) => member(params, 'ref')
    const named = completedItem(textOf(request.text, member(refIn(request), 'type')))
    if (named !== undefined) return this.#item(request, named, 'params.ref', refIn)
    const message = 'params.ref.type must be ref/prompt or ref/resource'
    return refusal(request, codes.invalidParams, message)
  }

  /** Sets the log level of the session at all servers. */
  #everywhere(request: McpRequest): Promise<ClientResponse> {
    keepLevel(this.exchange, request)
    return this.#only === undefined
      ? askEverywhere(this.upstreams, this.sender, request)
      : this.#ask(this.#only, request)
  }

  // --- one target ---

  /** `change` may replace the response. */
  #ask(
    entry: McpTargetEntry,
    request: OutgoingRequest,
    change?: (response: McpResponse) => ClientResponse | false,
  ): Promise<ClientResponse> {
    return this.#settle(entry, request, this.sender.send(entry, request), change)
  }

  /** Does the same with a response that may be one of the gateway. */
  #settle(
    entry: McpTargetEntry,
    request: OutgoingRequest,
    asked: Promise<ReceivedResponse | ClientResponse>,
    change?: (response: McpResponse) => ClientResponse | false,
  ): Promise<ClientResponse> {
    return asked.then(
      (one) =>
        'response' in one
          ? change?.(one.response) || responseFrom(this.upstreams, entry, request, one)
          : one,
      (thrown) => failedResponse(this.upstreams, entry, request, thrown),
    )
  }

  /** Asks the only target for what belongs to no item, such as the result of a task, and guards the response. */
  async #guardTask(
    entry: McpTargetEntry,
    guards: readonly PlacedGuard[],
    request: McpRequest,
    asked: OutgoingRequest,
  ): Promise<ReceivedResponse | ClientResponse> {
    const received = await this.sender.sendWithin(entry, asked, 0)
    const note = (text: string) => this.exchange.noteRefusal(entry, text, false)
    return guardResponse(this.upstreams, entry, guards, request, received, note)
  }

  /** Passes on a notification or response. Rejects with SessionEnded, or if the only target refuses. */
  async notify(message: McpNotification | McpResponse): Promise<void> {
    if (message.kind === 'notification') this.exchange.describe(message.method)
    // Servers of a stateless backend do not know about earlier requests, so there is nothing to notify.
    if (!this.exchange.backend.isStateless) await passOn(this.upstreams, message)
  }
}
