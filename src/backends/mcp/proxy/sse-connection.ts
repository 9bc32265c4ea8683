/** The older transport (HTTP with SSE): one stream carries all that a server says in a session. */
import type { CallListener } from '../../../engine/contracts/calls.ts'
import type { McpEvent } from '../event-stream.ts'
import { member, rawOf } from '../json/scan.ts'
import { type McpMessage, readMessage } from '../message.ts'
import { type AnswerListener, AnswerReader, type EventMark } from './answer-reader.ts'
import { TargetFailure } from './failure.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { prepareRequest } from './target-request.ts'
import type { Flow, Transport } from './transport.ts'

/** Requests that wait for the stream at a time. */
const mostPending = 1_000
/** Milliseconds in which the server must say where messages go. */
const endpointMs = 10_000

/** A request that waits for its response on the stream. */
interface Pending {
  readonly listener: AnswerListener
  /** JSON of the token by which its progress is told. */
  readonly progressToken: string | undefined
}

/** What a session holds at one server. */
class SseConnection implements AnswerListener {
  readonly #pending = new Map<string, Pending>()
  readonly #listeners = new Set<AnswerListener>()
  readonly #endpoint = Promise.withResolvers<string>()
  readonly #base: string
  #flow: Flow | undefined
  #timer: NodeJS.Timeout
  isOpen = true
  /** Label of the endpoint that it leads to. */
  label: string | undefined

  private constructor(base: string) {
    this.#base = base
    this.#endpoint.promise.catch(() => {})
    this.#timer = setTimeout(() => {
      this.#end(new TargetFailure('the server does not say where messages go'))
    }, endpointMs)
    this.#timer.unref()
  }

  /** Opens the stream and waits for the place of messages. Rejects with a TargetFailure or GatewayError. */
  static async open(exchange: McpExchange, entry: McpTargetEntry): Promise<SseConnection> {
    const { path } = entry.target
    const connection = new SseConnection(path)
    try {
      const headers = [['accept', 'text/event-stream'] as const]
      const ready = await prepareRequest(exchange, entry, {
        method: 'GET',
        headers,
        isLong: true,
        onEndpoint: ({ address }) => {
          connection.label = address.label
        },
      })
      const reader = new AnswerReader(connection)
      const call = exchange.runtime.call(ready.call, reader)
      reader.close = () => call.close()
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
    if (this.#pending.size >= mostPending) {
      throw new TargetFailure('too many requests are under way')
    }
    this.#pending.set(id, pending)
  }

  forget(id: string): void {
    this.#pending.delete(id)
  }

  /** Hears what belongs to no request. */
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

  onStream(): void {
    // The endpoint comes first.
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

  onMessage(message: McpMessage, mark: EventMark | undefined): void {
    if (message.kind === 'response') {
      const found = message.id === undefined ? undefined : this.#pending.get(message.id)
      if (message.id !== undefined) this.#pending.delete(message.id)
      found?.listener.onMessage(message, undefined)
      found?.listener.onEnd()
      return
    }
    this.#listenerOf(message)?.onMessage(message, mark)
  }

  /** Progress goes where the response will: on another stream it might come after it. */
  #listenerOf(message: McpMessage): AnswerListener | undefined {
    const pending = [...this.#pending.values()]
    const token = toldProgress(message)
    const asked = token && pending.find(({ progressToken }) => progressToken === token)
    if (asked) return asked.listener
    // Nothing says which request any other message belongs to: the one that waits last is a guess.
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

/** The token by which a client wants to hear of its request's progress, as JSON. */
function wantedProgress(message: McpMessage): string | undefined {
  if (message.kind !== 'request') return undefined
  const token = member(member(message.params, '_meta'), 'progressToken')
  return token && rawOf(message.text, token)
}

/** The token whose progress a server tells, as JSON. */
function toldProgress(message: McpMessage): string | undefined {
  if (message.kind !== 'notification' || message.method !== 'notifications/progress')
    return undefined
  const token = member(message.params, 'progressToken')
  return token && rawOf(message.text, token)
}

/** Path and query of the same server; undefined where it is another one's. */
function resolveEndpoint(base: string, data: string): string | undefined {
  try {
    const here = new URL(base, 'http://server.invalid')
    const found = new URL(data, here)
    // A server may name itself in full, by whatever name it knows: it is asked where it was found.
    const isAbsolute = /^https?:\/\//i.test(data)
    if (!isAbsolute && found.host !== here.host) return undefined
    return `${found.pathname}${found.search}`
  } catch {
    return undefined
  }
}

/** Connections that sessions hold, by target. */
export type Held = Map<string, { close(): void }>

export class SseTransport implements Transport {
  readonly #exchange: McpExchange
  readonly #entry: McpTargetEntry
  readonly #held: Held
  #isFresh: boolean

  /** `isFresh`: begins with a connection of its own. */
  constructor(exchange: McpExchange, entry: McpTargetEntry, held: Held, isFresh: boolean) {
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

  async post(body: string, listener: AnswerListener): Promise<Flow> {
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
    const reader = new AnswerReader({
      onStream: () => {},
      onMessage: () => {},
      onEvent: () => {},
      onEnd: () => {},
      onFailure: failed,
    })
    // The answer comes on the stream.
    const taken = () => (id === undefined ? listener.onEnd() : listener.onStream())
    const call = this.#exchange.runtime.call(ready.call, new Posted(reader, taken))
    reader.close = () => call.close()
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
    listener.onStream()
    return { pause: () => connection.pause(), resume: () => connection.resume(), close }
  }

  linger(): void {
    // The connection goes on anyway.
  }

  ended(): void {
    // Nothing lingers.
  }

  end(): Promise<void> {
    const { name } = this.#entry.target
    heldConnection(this.#held, this.#entry)?.close()
    this.#held.delete(name)
    return Promise.resolve()
  }
}

/** What a server says to a message that it takes is no MCP: `Accepted`. */
class Posted implements CallListener {
  readonly #reader: AnswerReader
  readonly #onTaken: () => void
  #isRefused = false

  constructor(reader: AnswerReader, onTaken: () => void) {
    this.#reader = reader
    this.#onTaken = onTaken
  }

  onHead(...[status, headers]: Parameters<CallListener['onHead']>): void {
    this.#isRefused = status >= 300
    if (this.#isRefused) this.#reader.onHead(status, headers)
  }

  onBytes(bytes: Uint8Array): void {
    if (this.#isRefused) this.#reader.onBytes(bytes)
  }

  onEnd(): void {
    if (this.#isRefused) this.#reader.onEnd()
    else this.#onTaken()
  }

  onFailure(...[error]: Parameters<CallListener['onFailure']>): void {
    this.#reader.onFailure(error)
  }
}

/** The connection of a session to a server; undefined where there is none that is open. */
export function heldConnection(held: Held, { target }: McpTargetEntry): SseConnection | undefined {
  const found = held.get(target.name)
  return found instanceof SseConnection && found.isOpen ? found : undefined
}
