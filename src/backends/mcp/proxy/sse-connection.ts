/** The older transport (HTTP with SSE): one stream carries all messages of a server in a session. */
import type { EventFields, McpEvent } from '../event-stream.ts'
import { member, rawOf } from '../json/node.ts'
import { type McpMessage, plainId, readMessage } from '../message.ts'
import { type AnswerListener, AnswerReader } from './answer-reader.ts'
import { noCoding } from './forwarded-headers.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { TargetFailure } from './refusals.ts'
import { prepareRequest } from './target-request.ts'
import type { Flow, OutgoingMessage, Transport } from './transport.ts'

/** Maximum number of requests that wait for a response on the stream. */
const maxPending = 1_000
/** Maximum time until the server names the endpoint for messages. */
const endpointMs = 10_000

/** A request that waits for its response on the stream. */
interface Pending {
  readonly listener: AnswerListener
  /** Progress token of the request, as JSON. */
  readonly progressToken: string | undefined
}

/** The stream of a session at one server. */
class SseConnection implements AnswerListener {
  readonly #pending = new Map<string, Pending>()
  readonly #listeners = new Set<AnswerListener>()
  readonly #endpoint = Promise.withResolvers<string>()
  readonly #base: string
  #flow: Flow | undefined
  #timer: NodeJS.Timeout
  isOpen = true
  /** Label of the connected endpoint. */
  label: string | undefined

  private constructor(base: string) {
    this.#base = base
    this.#endpoint.promise.catch(() => {})
    this.#timer = setTimeout(() => {
      this.#end(new TargetFailure('the server does not say where messages go'))
    }, endpointMs)
    this.#timer.unref()
  }

  /** Opens the stream and waits for its endpoint. Rejects with a TargetFailure or GatewayError. */
  static async open(exchange: McpExchange, entry: McpTargetEntry): Promise<SseConnection> {
    const { path } = entry.target
    const connection = new SseConnection(path)
    try {
      const headers = [['accept', 'text/event-stream'] as const, noCoding]
      const ready = await prepareRequest(exchange, entry, {
        method: 'GET',
        headers,
        isLong: true,
        onEndpoint: ({ address }) => {
          connection.label = address.label
        },
      })
      const reader = new AnswerReader(connection)
      const call = exchange.runtime.call(ready, reader)
      reader.call = call
      connection.#flow = call
      await connection.#endpoint.promise
      return connection
    } catch (thrown) {
      connection.close()
      throw thrown
    }
  }

  /** Path and query that messages are posted to. */
  get messagePath(): Promise<string> {
    return this.#endpoint.promise
  }

  expect(id: string, pending: Pending): void {
    if (this.#pending.size >= maxPending) {
      throw new TargetFailure('too many requests are under way')
    }
    this.#pending.set(id, pending)
  }

  forget(id: string): void {
    this.#pending.delete(id)
  }

  /** Adds a listener for messages that belong to no request. Returns a function that removes it. */
  listen(listener: AnswerListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  pause(): void {
    this.#flow?.pause()
  }

  resume(): void {
    this.#flow?.resume()
  }

  close(): void {
    this.#end(new TargetFailure('the session has ended'))
  }

  onEvent({ type, data }: McpEvent): void {
    if (type !== 'endpoint' || data === undefined) return
    const path = resolveEndpoint(this.#base, data)
    if (path === undefined) {
      this.#end(new TargetFailure('the server sends messages elsewhere'))
      return
    }
    clearTimeout(this.#timer)
    this.#endpoint.resolve(path)
  }

  onMessage(message: McpMessage, eventFields: EventFields | undefined): void {
    if (message.kind === 'response') {
      const key = message.id === undefined ? undefined : this.#keyOf(message.id)
      const found = key === undefined ? undefined : this.#pending.get(key)
      if (key !== undefined) this.#pending.delete(key)
      found?.listener.onMessage?.(message, undefined)
      found?.listener.onEnd()
      return
    }
    this.#listenerOf(message)?.onMessage?.(message, eventFields)
  }

  /** Returns the id of the request that this id answers, which may be the same number in another form. */
  #keyOf(id: string): string | undefined {
    if (this.#pending.has(id)) return id
    for (const key of this.#pending.keys()) if (plainId(key) === plainId(id)) return key
    return undefined
  }

  /**
   * Returns the listener for a message. Progress goes to the listener of its request, because only messages
   * on the same stream keep their order.
   */
  #listenerOf(message: McpMessage): AnswerListener | undefined {
    const pending = [...this.#pending.values()]
    const token = notifiedProgress(message)
    const asked = token && pending.find(({ progressToken }) => progressToken === token)
    if (asked) return asked.listener
    // Other messages do not name a request. Without a listener for them, they go with the newest request.
    const [listener = pending.at(-1)?.listener] = this.#listeners
    return listener
  }

  onEnd(): void {
    this.#end(new TargetFailure('the server has ended the session'))
  }

  onFailure(failure: TargetFailure): void {
    this.#end(failure)
  }

  #end(failure: TargetFailure): void {
    if (!this.isOpen) return
    this.isOpen = false
    clearTimeout(this.#timer)
    this.#flow?.close()
    this.#endpoint.reject(failure)
    for (const { listener } of this.#pending.values()) listener.onFailure(failure)
    for (const listener of this.#listeners) listener.onEnd()
    this.#pending.clear()
    this.#listeners.clear()
  }
}

/** Returns the progress token of a client's request as JSON. */
function wantedProgress(message: McpMessage): string | undefined {
  if (message.kind !== 'request') return undefined
  const token = member(member(message.params, '_meta'), 'progressToken')
  return token && rawOf(message.text, token)
}

/** Returns the progress token of a progress notification as JSON. */
function notifiedProgress(message: McpMessage): string | undefined {
  if (message.kind !== 'notification') return undefined
  if (message.method !== 'notifications/progress') return undefined
  const token = member(message.params, 'progressToken')
  return token && rawOf(message.text, token)
}

/** Returns path and query of the endpoint; undefined if the endpoint is at another server. */
function resolveEndpoint(base: string, data: string): string | undefined {
  try {
    const here = new URL(base, 'http://server.invalid')
    const found = new URL(data, here)
    // An absolute URL may have any name of the server. The gateway uses its configured address instead.
    const isAbsolute = /^https?:\/\//i.test(data)
    if (!isAbsolute && found.host !== here.host) return undefined
    return `${found.pathname}${found.search}`
  } catch {
    return undefined
  }
}

/** Open connections of a session, by target. */
export type OpenConnections = Map<string, { close(): void }>

export class SseTransport implements Transport {
  readonly era = 'legacy'
  readonly #exchange: McpExchange
  readonly #entry: McpTargetEntry
  readonly #held: OpenConnections
  #isFresh: boolean

  /** If `isFresh`, the first message opens a new connection. Otherwise there must be an open one. */
  constructor(
    exchange: McpExchange,
    entry: McpTargetEntry,
    held: OpenConnections,
    isFresh: boolean,
  ) {
    this.#exchange = exchange
    this.#entry = entry
    this.#held = held
    this.#isFresh = isFresh
  }

  get endpoint(): string | undefined {
    return heldConnection(this.#held, this.#entry)?.label
  }

  async #connection(): Promise<SseConnection> {
    const { name } = this.#entry.target
    const known = heldConnection(this.#held, this.#entry)
    if (known !== undefined && !this.#isFresh) return known
    if (!this.#isFresh) throw new TargetFailure('the server has ended the session')
    this.#isFresh = false
    known?.close()
    const connection = await SseConnection.open(this.#exchange, this.#entry)
    this.#held.set(name, connection)
    return connection
  }

  async post({ text: body }: OutgoingMessage, listener: AnswerListener): Promise<Flow> {
    const connection = await this.#connection()
    const message = readMessage(body)
    const id = message.kind === 'request' ? message.id : undefined
    const path = await connection.messagePath
    const headers = [['content-type', 'application/json'] as const]
    const pinned = connection.label
    const wanted = { method: 'POST', body, headers, path, pinned } as const
    const ready = await prepareRequest(this.#exchange, this.#entry, wanted)
    if (id !== undefined) {
      connection.expect(id, { listener, progressToken: wantedProgress(message) })
    }
    const failed = (failure: TargetFailure) => {
      if (id !== undefined) connection.forget(id)
      listener.onFailure(failure)
    }
    // The response comes on the stream. The body of the response to the POST is ignored.
    const accepted = () => (id === undefined ? listener.onEnd() : listener.onStream?.())
    const reader = new AnswerReader({ onEnd: accepted, onFailure: failed }, true)
    reader.call = this.#exchange.runtime.call(ready, reader)
    return {
      pause: () => connection.pause(),
      resume: () => connection.resume(),
      close: () => {
        if (id !== undefined) connection.forget(id)
      },
    }
  }

  async listen(listener: AnswerListener): Promise<Flow> {
    const connection = await this.#connection()
    const close = connection.listen(listener)
    listener.onStream?.()
    return { pause: () => connection.pause(), resume: () => connection.resume(), close }
  }

  end(): Promise<void> {
    const { name } = this.#entry.target
    heldConnection(this.#held, this.#entry)?.close()
    this.#held.delete(name)
    return Promise.resolve()
  }
}

/** The open connection of a session to a server, if there is one. */
export function heldConnection(
  held: OpenConnections,
  { target }: McpTargetEntry,
): SseConnection | undefined {
  const found = held.get(target.name)
  return found instanceof SseConnection && found.isOpen ? found : undefined
}
