/** State that all MCP backends of one thread share: sessions, callbacks and one timer. */
import { BoundedMap } from '../../../../../ground/base/bounded-map.ts'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import { Seal } from '../../../../../ground/secrets/seal.ts'
import { CompiledBackends } from '../../../../proxy/request/backend-kind.ts'
import type { GatewayRuntime } from '../../../../proxy/request/runtime.ts'
import { now } from '../../../../proxy/upstream/endpoint.ts'
import { newId } from '../../ids.ts'
import { type McpMessage, readMessage } from '../../message.ts'
import { StdioHostClient } from '../target/stdio-host.ts'
import { compileTargets, type McpBackend } from '../target/targets.ts'
import type { Flow } from '../target/transport.ts'
import type { ClientRecord } from './client-view.ts'
import { CrossThreadCalls } from './cross-thread-calls.ts'
import { ListNews } from './list-news.ts'
import { SessionNotices } from './session-notices.ts'
import { SessionSettings } from './session-settings.ts'
import { SessionSeal, type SessionState, type TargetSession } from './session-state.ts'
import { SharedStreams } from './shared-streams.ts'
import { TargetSessions } from './target-sessions.ts'
import { ThreadReplies } from './thread-replies.ts'
import { isRunning, nameThread, ThreadChannel } from './threads.ts'

/** A client of the older transport. Its stream is in one thread, but any thread may receive its messages. */
interface StreamClient {
  readonly backend: string
  readonly principal: string | undefined
  /** Serves messages that another thread has received. Returns false if there are too many. */
  receiveFrom(client: ClientRecord, messages: readonly McpMessage[]): boolean
}

/** Whether the client's stream takes messages: `lost` if no thread has it, or it is another principal's. */
type Delivery = 'taken' | 'full' | 'lost'

/** Messages for a client whose stream is in another thread. */
interface PassedMessages {
  readonly id: string
  readonly backend: string
  readonly principal: string | undefined
  readonly texts: readonly string[]
  /** The request that brought the messages. Its credentials authorize them. */
  readonly client: ClientRecord
}

/** A message between threads. */
type ThreadQuestion =
  /** Asks the thread of this name whether it has the stream of a client. */
  | { readonly wanted: Omit<PassedMessages, 'texts' | 'client'>; readonly at: string }
  | { readonly passed: PassedMessages; readonly at: string }

type ThreadMessage =
  | { readonly ended: string }
  | (ThreadQuestion & { readonly by: string })
  | { readonly delivery: Delivery; readonly by: string }

/** State of a session beyond what its encrypted id contains. */
interface LiveSession {
  /** Sessions with targets that were opened after the client's session, by target name. */
  readonly targets: Map<string, TargetSession | Promise<TargetSession>>
  /** Open connections of the session. */
  readonly held: Map<string, { close(): void }>
  lastUsed: number
}

/** Maximum time for the thread of a stream to respond, which may be busy. */
const passTimeoutMs = 10_000
/** Maximum number of concurrent requests of one session in this thread. */
const maxPending = 256

/** Interval of the sweep that drops old state and sends comments on the open streams of clients. */
const sweepMs = 15_000
/** After this time without messages a session leaves memory; its id stays valid. */
const idleMs = 30 * 60_000
/** Maximum number of sessions in memory. The least recently used one is dropped first. */
const maxLiveSessions = 50_000
/** Maximum number of decrypted ids in the cache. */
const maxOpenedIds = 4_096
/** How long an ended session is remembered, so that it cannot be continued. */
const endedSessionMs = 24 * 3_600_000
/** Maximum number of ended sessions to remember. */
const maxEndedSessions = 100_000

export type McpBackends = CompiledBackends<'mcp', McpBackend>

/** An open stream to a client. */
export interface SweptStream {
  onSweep(): void
}

/** Functions that are called together. */
class Callbacks {
  readonly #all = new Set<() => void>()

  /** Returns a function that removes the callback. */
  add(callback: () => void): () => void {
    this.#all.add(callback)
    return () => this.#all.delete(callback)
  }

  call(): void {
    for (const callback of [...this.#all]) callback()
  }
}

export class McpSharedState {
  readonly backends: McpBackends = new CompiledBackends('mcp', compileTargets)
  readonly calls = new CrossThreadCalls()
  readonly settings = new SessionSettings()
  readonly targetSessions = new TargetSessions()
  readonly notices = new SessionNotices()
  readonly listNews = new ListNews((backend, target) =>
    this.backends.find(backend)?.targets.find((entry) => entry.target.name === target),
  )
  /** Streams of the older transport to servers. */
  readonly sharedStreams = new SharedStreams(
    () => this.#nameThread(),
    (id) => this.live({ id }),
  )
  /** Called after each configuration change. */
  readonly changes = new Callbacks()
  /** Called when the process is about to stop: they end streams, so that clients open them at another proxy. */
  readonly stops = new Callbacks()
  readonly #key: () => Uint8Array | undefined
  #seal:
    | { readonly value: Uint8Array; readonly sessions: SessionSeal; readonly streams: Seal }
    | undefined
  /** Names this thread in ids of streams. */
  readonly #name = newId()
  #named: Promise<void> | undefined
  readonly #opened = new BoundedMap<string, SessionState>(maxOpenedIds)
  readonly #live = new Map<string, LiveSession>()
  /** When each session has ended. */
  readonly #ended = new BoundedMap<string, number>(maxEndedSessions)
  readonly #swept = new Set<SweptStream>()
  #lingering = new Set<Flow>()
  readonly #pending = new Map<string, number>()
  readonly #replies = new ThreadReplies<Delivery>()
  readonly #streamClients = new Map<string, StreamClient>()
  #timer: NodeJS.Timeout | undefined
  readonly #channel = new ThreadChannel<ThreadMessage>('sessions', (one) => this.#receive(one))
  /** Version of the gateway software. */
  readonly version: string

  /** The process that runs commands. */
  readonly stdioHost: StdioHostClient | undefined

  constructor(runtime: Pick<GatewayRuntime, 'version' | 'sessionKey' | 'stdio' | 'config'>) {
    this.version = runtime.version
    this.#key = runtime.sessionKey
    this.stdioHost = runtime.stdio && new StdioHostClient(runtime.stdio, runtime)
    // The end of a session that comes before this thread needs it must not be lost.
    this.#channel.open()
  }

  // --- ids ---

  get #seals() {
    const value = this.#key()
    if (value === undefined) throw new GatewayError('bug', 'the key of sessions has not arrived')
    if (this.#seal?.value !== value) {
      const streams = new Seal('sluice mcp stream ids', value)
      this.#seal = { value, sessions: new SessionSeal(value), streams }
      this.#opened.clear()
    }
    return this.#seal
  }

  seal(state: SessionState): string {
    return this.#seals.sessions.seal(state)
  }

  /** Returns the session of an id; undefined if the id is invalid or the session has ended. */
  open(id: string, backend: string): SessionState | undefined {
    const seal = this.#seals.sessions
    let state = this.#opened.get(id)
    if (state === undefined) {
      state = seal.open(id, backend)
      if (state === undefined) return undefined
      this.#opened.set(id, state)
    }
    return state.backend !== backend || this.#ended.has(state.id) ? undefined : state
  }

  // --- sessions ---

  /** Returns the state of a session in memory. Creates it on first use. */
  live({ id }: Pick<SessionState, 'id'>): LiveSession {
    let live = this.#live.get(id)
    if (live === undefined) {
      live = { targets: new Map(), held: new Map(), lastUsed: 0 }
      const [oldest] = this.#live.size >= maxLiveSessions ? this.#live.keys() : []
      if (oldest !== undefined) this.forget(oldest)
    } else this.#live.delete(id)
    // The last entry of a Map is the most recently used one.
    this.#live.set(id, live)
    live.lastUsed = now()
    this.#watch()
    return live
  }

  known({ id }: SessionState): LiveSession | undefined {
    return this.#live.get(id)
  }

  /** Ends the session in all threads of this process. */
  end({ id }: SessionState): void {
    this.#channel.publish({ ended: id })
  }

  #receive(message: ThreadMessage): void {
    if ('ended' in message) this.#noteEnd(message.ended)
    else if ('delivery' in message) this.#replies.receive(message.by, message.delivery)
    else if (message.at === this.#name) {
      const { by } = message
      this.#channel.post({ delivery: this.#deliver(message), by })
    }
  }

  // --- clients of the older transport ---

  /** Makes the id of a client with a stream in this thread. The id names the thread. */
  async newStreamId(backend: string): Promise<string> {
    await this.#nameThread()
    const plain = `${this.#name} ${newId()}`
    return this.#seals.streams.seal(plain, `mcp stream ${backend}`)
  }

  /** Makes the name of this thread known to the process. */
  async #nameThread(): Promise<string> {
    this.#named ??= nameThread(this.#name)
    await this.#named
    return this.#name
  }

  /** Registers a client with a stream in this thread. Returns a function that removes it. */
  addStreamClient(id: string, client: StreamClient): () => void {
    this.#streamClients.set(id, client)
    return () => this.#streamClients.delete(id)
  }

  /** Returns the client with this id if its stream is in this thread. */
  streamClient(id: string): StreamClient | undefined {
    return this.#streamClients.get(id)
  }

  /** Sends messages to the thread with the client's stream, if there is one. */
  async passOn(passed: PassedMessages): Promise<Delivery> {
    const { id, backend, principal } = passed
    const plain = this.#seals.streams.open(id, `mcp stream ${backend}`)
    const [at = ''] = plain?.toString().split(' ') ?? []
    if (at === '' || at === this.#name || (await isRunning(at)) === false) return 'lost'
    // Every thread gets a copy of what is sent, so that a body is sent only if its client exists.
    const found = await this.#ask({ wanted: { id, backend, principal }, at })
    return found === 'taken' ? this.#ask({ passed, at }) : found
  }

  #ask(question: ThreadQuestion): Promise<Delivery> {
    return this.#replies.ask(passTimeoutMs, 'lost', (by) => this.#channel.post({ ...question, by }))
  }

  #deliver(question: ThreadQuestion): Delivery {
    const { id, backend, principal } = 'passed' in question ? question.passed : question.wanted
    const found = this.#streamClients.get(id)
    if (found?.backend !== backend || found.principal !== principal) return 'lost'
    if ('wanted' in question) return 'taken'
    const { client, texts } = question.passed
    return found.receiveFrom(client, texts.map(readMessage)) ? 'taken' : 'full'
  }

  // --- limits ---

  /**
   * Counts a new request of the session, or returns false if there are too many. The caller must call
   * `leave` when the request ends.
   */
  admit({ id }: SessionState): boolean {
    const count = this.#pending.get(id) ?? 0
    if (count >= maxPending) return false
    this.#pending.set(id, count + 1)
    return true
  }

  leave({ id }: SessionState): void {
    const count = this.#pending.get(id) ?? 0
    if (count > 1) this.#pending.set(id, count - 1)
    else this.#pending.delete(id)
  }

  #noteEnd(id: string): void {
    this.forget(id)
    this.targetSessions.forget(id)
    this.#ended.set(id, now())
    this.#watch()
  }

  /** Drops the state of a session in memory. */
  forget(id: string): void {
    const live = this.#live.get(id)
    this.#live.delete(id)
    this.settings.forget(id)
    this.notices.forget(id)
    for (const one of live?.held.values() ?? []) one.close()
  }

  // --- sweeps ---

  /**
   * Keeps the connection of a received response open until the server ends it or the next sweep closes it.
   */
  linger(flow: Flow): void {
    this.#lingering.add(flow)
    this.#watch()
  }

  /** Called when the connection of a flow has ended. Releases the flow, which holds memory of the call. */
  ended(flow: Flow): void {
    this.#lingering.delete(flow)
  }

  /** Calls `onSweep` of the stream at each sweep. */
  addSwept(stream: SweptStream): void {
    this.#swept.add(stream)
    this.#watch()
  }

  removeSwept(stream: SweptStream): void {
    this.#swept.delete(stream)
  }

  /** Starts the sweep timer. It stops when there is nothing left to sweep. */
  #watch(): void {
    this.#timer ??= setInterval(() => this.#sweep(), sweepMs).unref()
  }

  #sweep(): void {
    const late = this.#lingering
    this.#lingering = new Set<Flow>()
    for (const flow of late) flow.close()
    for (const stream of [...this.#swept]) stream.onSweep()
    const at = now()
    for (const [id, { lastUsed }] of this.#live) {
      if (at - lastUsed < idleMs) break
      this.forget(id)
    }
    for (const [id, since] of this.#ended) {
      if (at - since < endedSessionMs) break
      this.#ended.delete(id)
    }
    if (late.size + this.#swept.size + this.#live.size + this.#ended.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
