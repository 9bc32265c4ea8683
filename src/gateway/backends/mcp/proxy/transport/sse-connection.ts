/** The older transport (HTTP with SSE): one stream carries all messages of a server in a session. */
import type { EventFields } from '../../event-stream.ts'
import { member, rawOf } from '../../json/node.ts'
import { type McpMessage, plainId } from '../../message.ts'
import { acceptIdentity } from '../exchange/forwarded-headers.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { PendingResponse, SharedStreams, SseStream } from '../session/shared-streams.ts'
import { type ResponseListener, ResponseReader } from '../target/response-reader.ts'
import { TargetFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { Flow } from '../target/transport.ts'
import { prepareRequest } from './target-request.ts'

/** Maximum number of requests that wait for a response on the stream. */
const maxPending = 1_000
/** Maximum time until the server names the endpoint for messages. */
const endpointMs = 10_000

/** The stream of a session at one server. */
export class SseConnection implements ResponseListener, SseStream {
  readonly #pending = new Map<string, PendingResponse>()
  readonly #listeners = new Set<ResponseListener>()
  readonly #endpoint = Promise.withResolvers<string>()
  readonly #base: string
  #flow: Flow | undefined
  #timer: NodeJS.Timeout
  isOpen = true
  label: string | undefined
  messagePath = ''
  /** Id by which all threads of the process find the connection. */
  id: string | undefined
  #remove: (() => void) | undefined

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
      const headers = [['accept', 'text/event-stream'] as const, acceptIdentity]
      const ready = await prepareRequest(exchange, entry, {
        method: 'GET',
        headers,
        isLong: true,
        onEndpoint: ({ address }) => {
          connection.label = address.label
        },
      })
      const reader = new ResponseReader(connection)
      const call = exchange.runtime.call(ready, reader)
      reader.call = call
      connection.#flow = call
      connection.messagePath = await connection.#endpoint.promise
      await connection.#share(exchange.shared.sharedStreams)
      return connection
    } catch (thrown) {
      connection.close()
      throw thrown
    }
  }

  async #share(streams: SharedStreams): Promise<void> {
    const id = await streams.add(this)
    this.id = id
    if (this.isOpen) this.#remove = () => streams.remove(id)
    else streams.remove(id)
  }

  expect(id: string, pending: PendingResponse): void {
    if (this.#pending.size >= maxPending) {
      throw new TargetFailure('too many requests are under way')
    }
    this.#pending.set(id, pending)
  }

  forget(id: string): void {
    this.#pending.delete(id)
  }

  /** Adds a listener for messages that belong to no request. Returns a function that removes it. */
  listen(listener: ResponseListener): () => void {
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

  onEndpoint(address: string): void {
    const path = resolveEndpoint(this.#base, address)
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

  /** Returns the id of the request with this id in its response, which may be the same number in another form. */
  #keyOf(id: string): string | undefined {
    if (this.#pending.has(id)) return id
    for (const key of this.#pending.keys()) if (plainId(key) === plainId(id)) return key
    return undefined
  }

  /**
   * Returns the listener for a message. Progress goes to the listener of its request, because only messages
   * on the same stream keep their order.
   */
  #listenerOf(message: McpMessage): ResponseListener | undefined {
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
    this.#remove?.()
    this.#flow?.close()
    this.#endpoint.reject(failure)
    for (const { listener } of this.#pending.values()) listener.onFailure(failure)
    for (const listener of this.#listeners) listener.onEnd()
    this.#pending.clear()
    this.#listeners.clear()
  }
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

/** The open connection of a session to a server, if there is one. */
export function heldConnection(
  held: OpenConnections,
  { target }: McpTargetEntry,
): SseConnection | undefined {
  const found = held.get(target.name)
  return found instanceof SseConnection && found.isOpen ? found : undefined
}
