/** One message of a client, from the reading to the last answer. */
import type { McpItem } from '../../../exchange/mcp.ts'
import { startCallSpan } from '../../../proxy/request/tracing.ts'
import { codes, errorCodeOf, errorText, resultText } from '../answers.ts'
import type { McpEvent } from '../event-stream.ts'
import { eventText } from '../event-stream.ts'
import { type JsonNode, jsonValue, member, splice, textOf } from '../json/scan.ts'
import { readCursor, withoutItems } from '../lists.ts'
import type { McpNotification, McpRequest, McpResponse } from '../message.ts'
import { type ItemMethod, type ListMethod, methodOf } from '../methods.ts'
import { targetOfId, targetOfName, targetOfUri } from '../naming.ts'
import { clientResult } from '../results.ts'
import type { EventMark } from './answer-reader.ts'
import { toFailure } from './failure.ts'
import { askLists } from './fan-out.ts'
import { clientMark } from './marks.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { keptItems, messageForClient } from './server-messages.ts'
import { type ClientSession, SessionEnded, tell } from './target-session.ts'
import { type Abandon, type Answered, ask, type Relay, type Transport } from './transport.ts'

/** Where the answers of a turn go. */
interface TurnOutlet {
  readonly isSlow: boolean
  open(): void
  send(text: string, mark?: EventMark): void
  sendEvent(text: string): void
  onDrain(resume: () => void): void
}

/** What answers a request: text for the client, and perhaps where its stream stands. */
interface TurnAnswer {
  readonly text: string
  readonly mark?: EventMark | undefined
}

const itemWords = { tool: 'tool', prompt: 'prompt', resource: 'resource' } as const

export class Turn {
  readonly exchange: McpExchange
  readonly session: ClientSession
  readonly outlet: TurnOutlet
  readonly abandon: Abandon

  constructor(session: ClientSession, outlet: TurnOutlet, abandon: Abandon) {
    this.session = session
    this.exchange = session.exchange
    this.outlet = outlet
    this.abandon = abandon
  }

  get #targets(): readonly McpTargetEntry[] {
    return this.exchange.backend.targets
  }

  /** The only target; undefined where there are several. */
  get #only(): McpTargetEntry | undefined {
    return this.#targets.length === 1 ? this.#targets[0] : undefined
  }

  find(name: string): McpTargetEntry | undefined {
    return this.#targets.find(({ target }) => target.name === name)
  }

  /**
   * The answer to a request. Rejects with a TargetFailure where the only target gave none, with
   * SessionEnded, or with a GatewayError.
   */
  async answer(request: McpRequest): Promise<TurnAnswer> {
    const answer = await this.#answer(request)
    const code = errorCodeOf(answer.text)
    if (code !== undefined) this.exchange.noteError(code)
    return answer
  }

  #answer(request: McpRequest): Promise<TurnAnswer> | TurnAnswer {
    const method = methodOf(request.method)
    this.exchange.tell(request.method)
    switch (method.kind) {
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
      case 'other':
        // Rules cannot judge what the gateway does not understand.
        return this.#onlyWithout((entry) => this.exchange.rulesOf(entry) !== undefined, request)
      default:
        return this.#onlyWithout(() => false, request)
    }
  }

  /** For methods of one server, which several have no way to share. */
  #onlyWithout(
    isRefused: (entry: McpTargetEntry) => boolean,
    request: McpRequest,
  ): Promise<TurnAnswer> | TurnAnswer {
    const only = this.#only
    if (only !== undefined && !isRefused(only)) return this.#ask(only, request)
    return { text: errorText(request.id, codes.methodNotFound, 'Method not found') }
  }

  // --- lists ---

  async #list(request: McpRequest, method: ListMethod): Promise<TurnAnswer> {
    const only = this.#only
    if (only !== undefined) {
      const { response, mark } = await this.send(only, request)
      const keeps = keptItems(this.exchange, only, method)
      return {
        text: keeps === undefined ? response.text : withoutItems(method, response, keeps),
        mark,
      }
    }
    const cursor = textOf(request.text, member(request.params, 'cursor'))
    const cursors = cursor === undefined ? undefined : readCursor(cursor)
    if (cursor !== undefined && cursors === undefined) {
      return { text: errorText(request.id, codes.invalidParams, 'Invalid cursor') }
    }
    return { text: await askLists(this, request, method, cursors) }
  }

  // --- items ---

  #item(request: McpRequest, { key, type }: ItemMethod): Promise<TurnAnswer> {
    const node = member(request.params, key)
    const called = textOf(request.text, node)
    if (node === undefined || called === undefined) {
      return Promise.resolve({
        text: errorText(request.id, codes.invalidParams, `params.${key} must be a string`),
      })
    }
    return this.#atItem(request, node, called, { key, type })
  }

  /** `node`: what names the item, in the request. */
  async #atItem(
    request: McpRequest,
    node: JsonNode,
    called: string,
    { key, type }: Pick<ItemMethod, 'key' | 'type'>,
  ): Promise<TurnAnswer> {
    const unknown = () => ({
      text: errorText(request.id, codes.invalidParams, `Unknown ${itemWords[type]}: ${called}`),
    })
    const found = this.#locate(called, key)
    if (found === undefined) return unknown()
    const { entry, name } = found
    const args = member(request.params, 'arguments')
    const item: McpItem = { type, target: entry.target.name, name }
    const isTold = args !== undefined && this.exchange.tellsArguments(entry)
    const value = isTold ? jsonValue(request.text, args) : undefined
    if (!this.exchange.mayUse(entry, request.method, item, value)) return unknown()
    if (this.#only !== undefined) return this.#ask(entry, request)
    const { start, end } = node
    const text = splice(request.text, [{ start, end, text: JSON.stringify(name) }])
    return this.#ask(entry, { text, id: request.id })
  }

  #locate(called: string, key: 'name' | 'uri') {
    const only = this.#only
    if (only !== undefined) return { entry: only, name: called }
    const parts = key === 'name' ? targetOfName(called) : targetOfUri(called)
    const entry = parts && this.find(parts.target)
    return entry && parts && { entry, name: parts.name }
  }

  #complete(request: McpRequest): Promise<TurnAnswer> {
    const ref = member(request.params, 'ref')
    const type = textOf(request.text, member(ref, 'type'))
    const isPrompt = type === 'ref/prompt'
    if (!isPrompt && type !== 'ref/resource') {
      const message = 'params.ref.type must be ref/prompt or ref/resource'
      return Promise.resolve({ text: errorText(request.id, codes.invalidParams, message) })
    }
    const key = isPrompt ? 'name' : 'uri'
    const node = member(ref, key)
    const called = textOf(request.text, node)
    if (node === undefined || called === undefined) {
      return Promise.resolve({
        text: errorText(request.id, codes.invalidParams, `params.ref.${key} must be a string`),
      })
    }
    return this.#atItem(request, node, called, { key, type: isPrompt ? 'prompt' : 'resource' })
  }

  /** For all who can: done where at least one has done it. */
  async #everywhere(request: McpRequest): Promise<TurnAnswer> {
    if (this.#only !== undefined) return this.#ask(this.#only, request)
    const able = this.#targets.filter(({ target }) => {
      return this.session.can(target.name)?.includes('logging') ?? true
    })
    const all = await Promise.allSettled(able.map((entry) => this.send(entry, request)))
    const done = all.filter(
      (one) => one.status === 'fulfilled' && one.value.response.error === undefined,
    )
    if (done.length > 0) return { text: resultText(request.id, '{}') }
    const first = all.find((one) => one.status === 'fulfilled')
    if (first !== undefined) return { text: first.value.response.text }
    return { text: errorText(request.id, codes.internal, 'no server can do that') }
  }

  // --- one target ---

  async #ask(entry: McpTargetEntry, request: Pick<McpRequest, 'text' | 'id'>): Promise<TurnAnswer> {
    try {
      const { response, mark } = await this.send(entry, request)
      return { text: this.#seen(entry, response), mark }
    } catch (thrown) {
      if (thrown instanceof SessionEnded || this.#only !== undefined) throw thrown
      const failure = toFailure(thrown)
      if (failure.isResumable) throw failure
      const { target } = entry
      return { text: errorText(request.id, codes.internal, `${target.name}: ${failure.message}`) }
    }
  }

  #seen({ target }: McpTargetEntry, response: McpResponse): string {
    return this.#only === undefined ? clientResult(target.name, response) : response.text
  }

  /** Rejects as `answer` does. */
  send(entry: McpTargetEntry, request: Pick<McpRequest, 'text' | 'id'>): Promise<Answered> {
    return this.session.use(entry, (transport) => this.#askOver(entry, transport, request))
  }

  async #askOver(
    entry: McpTargetEntry,
    transport: Transport,
    request: Pick<McpRequest, 'text' | 'id'>,
  ): Promise<Answered> {
    const { context } = this.exchange
    const { name } = entry.target
    const { method = '', item } = this.exchange.facts ?? {}
    const what = item === undefined ? `${method} ${name}` : `${method} ${name}_${item}`
    const span = startCallSpan(context, what, [
      ['mcp.method.name', method],
      ['mcp.target', name],
    ])
    transport.traceparent = span?.header
    const answered = await ask(transport, request, this.#relay(entry), this.abandon).catch(
      (thrown: unknown) => {
        span?.end(thrown instanceof Error ? thrown.message : 'no answer')
        throw thrown
      },
    )
    span?.end(answered.response.error === undefined ? undefined : 'the answer is an error')
    const mark = this.#markOf(entry, answered.mark)
    return { ...answered, mark }
  }

  #markOf({ target }: McpTargetEntry, mark: EventMark | undefined): EventMark | undefined {
    return this.#only === undefined ? clientMark(target.name, mark) : mark
  }

  #relay(entry: McpTargetEntry): Relay {
    const { outlet } = this
    return {
      onStream: () => outlet.open(),
      onMessage: (message, mark) => {
        const text = messageForClient(this.session, entry, message)
        if (text !== undefined) outlet.send(text, this.#markOf(entry, mark))
      },
      onEvent: (event) => outlet.sendEvent(eventText(this.#marked(entry, event))),
      hold: (resume) => {
        if (outlet.isSlow) outlet.onDrain(resume)
        return outlet.isSlow
      },
    }
  }

  #marked(entry: McpTargetEntry, event: McpEvent): McpEvent {
    const { id } = event
    return { ...event, id: this.#markOf(entry, { id, retry: undefined })?.id }
  }

  // --- what needs no answer ---

  /** Rejects with SessionEnded, or where the only target refuses. */
  async notify(message: McpNotification | McpResponse): Promise<void> {
    if (message.kind === 'notification') this.exchange.tell(message.method)
    // Without sessions there is nobody who would still know what it is about.
    if (this.exchange.backend.isStateless) return
    const only = this.#only
    if (only !== undefined) {
      await this.session.use(only, (transport) => tell(transport, message.text))
      return
    }
    if (message.kind === 'response') await this.#respond(message)
    else await this.#notifyAll(message)
  }

  /** An answer to a server: its id says to which. One without an id is nobody's. */
  async #respond(message: McpResponse): Promise<void> {
    const found = message.id === undefined ? undefined : targetOfId(message.id)
    const entry = found && this.find(found.target)
    const node = member(message.root, 'id')
    if (found === undefined || entry === undefined || node === undefined) return
    const { start, end } = node
    const text = splice(message.text, [{ start, end, text: found.name }])
    await this.session.use(entry, (transport) => tell(transport, text))
  }

  async #notifyAll(message: McpNotification): Promise<void> {
    const token = member(message.params, 'progressToken')
    const found = token?.type === 'string' ? this.#ofServer(message, token) : undefined
    if (found !== undefined) {
      await this.session.use(found.entry, (transport) => tell(transport, found.text))
      return
    }
    // A server that has never heard of the client has nothing to be told.
    const told = this.#targets.filter(({ target }) => this.session.has(target.name))
    const all = await Promise.allSettled(
      told.map((entry) => this.session.use(entry, (transport) => tell(transport, message.text))),
    )
    const ended = all.find((one) => one.status === 'rejected' && one.reason instanceof SessionEnded)
    if (ended?.status === 'rejected') throw ended.reason
  }

  /** Progress of what a server has asked for. */
  #ofServer({ text }: McpNotification, token: JsonNode) {
    const found = targetOfId(JSON.stringify(textOf(text, token)))
    const entry = found && this.find(found.target)
    if (found === undefined || entry === undefined) return undefined
    const { start, end } = token
    return { entry, text: splice(text, [{ start, end, text: found.name }]) }
  }
}
