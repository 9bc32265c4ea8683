/** State that all MCP backends of one thread share: sessions, callbacks and one timer. */
import { BroadcastChannel } from 'node:worker_threads'
import { GatewayError } from '../../../../ground/errors/index.ts'
import { Seal } from '../../../../ground/secrets/seal.ts'
import { CompiledBackends } from '../../../proxy/request/backend-kind.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { now } from '../../../proxy/upstream/choose.ts'
import { readMessage } from '../message.ts'
import {
  newSessionId,
  SessionSeal,
  type SessionState,
  type TargetSession,
} from '../session-state.ts'
import { Bridge } from './bridge.ts'
import { LateSessions } from './late-sessions.ts'
import { compileTargets, type McpBackend } from './mcp-targets.ts'
import type { KeptAlive, OpenStreams } from './outlet.ts'
import { SessionNotices } from './session-notices.ts'
import { SharedStreams } from './shared-streams.ts'
import type {
  Delivery,
  PassedMessages,
  StreamClient,
  ThreadMessage,
  ThreadQuestion,
} from './thread-messages.ts'
import { isRunning, nameThread } from './threads.ts'
import type { Flow } from './transport.ts'

/** State of a session beyond what its encrypted id contains. */
interface LiveSession {
  /** Sessions at targets that were begun after the client's session, by target name. */
  readonly targets: Map<string, TargetSession | Promise<TargetSession>>
  /** Open connections of the session. */
  readonly held: Map<string, { close(): void }>
  lastUsed: number
}

/** Maximum time for the thread of a stream to answer, which may be busy. */
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

export class McpHub {
  readonly backends: McpBackends = new CompiledBackends(
    'mcp',
    (name, { targets, isStateless }, before) => compileTargets(name, targets, isStateless, before),
  )
  readonly bridge = new Bridge()
  readonly late = new LateSessions()
  readonly notices = new SessionNotices()
  /** Streams of the older transport to servers. */
  readonly sharedStreams = new SharedStreams(
    () => this.#nameThread(),
    (id) => this.live({ id }),
  )
  readonly #key: () => Uint8Array | undefined
  #seal:
    | { readonly value: Uint8Array; readonly seal: SessionSeal; readonly streams: Seal }
    | undefined
  /** Names this thread in ids of streams. */
  readonly #name = newSessionId()
  #named: Promise<void> | undefined
  readonly #opened = new Map<string, SessionState>()
  readonly #live = new Map<string, LiveSession>()
  readonly #ended = new Map<string, number>()
  readonly #sweeps = new Set<() => void>()
  readonly #streams = new Set<KeptAlive>()
  #lingering = new Set<Flow>()
  readonly #pending = new Map<string, number>()
  readonly #waiting = new Map<string, (delivery: Delivery) => void>()
  readonly #legacyClients = new Map<string, StreamClient>()
  readonly #changes = new Set<() => void>()
  readonly #stops = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #channel: BroadcastChannel | undefined
  /** Version of the gateway software. */
  readonly version: string

  constructor({ version, sessionKey }: Pick<GatewayRuntime, 'version' | 'sessionKey'>) {
    this.version = version
    this.#key = sessionKey
  }

  // --- ids ---

  get #streamSeal(): Seal {
    return this.#seals.streams
  }

  get #sealing(): SessionSeal {
    return this.#seals.seal
  }

  get #seals() {
    const value = this.#key()
    if (value === undefined) throw new GatewayError('bug', 'the key of sessions has not arrived')
    if (this.#seal?.value !== value) {
      const streams = new Seal('sluice mcp stream ids', value)
      this.#seal = { value, seal: new SessionSeal(value), streams }
      this.#opened.clear()
    }
    return this.#seal
  }

  seal(state: SessionState): string {
    return this.#sealing.seal(state)
  }

  /** Returns the session of an id; undefined if the id is invalid or the session has ended. */
  open(id: string, backend: string): SessionState | undefined {
    const seal = this.#sealing
    this.#otherThreads()
    let state = this.#opened.get(id)
    if (state === undefined) {
      state = seal.open(id, backend)
      if (state === undefined) return undefined
      const [oldest] = this.#opened.size >= maxOpenedIds ? this.#opened.keys() : []
      if (oldest !== undefined) this.#opened.delete(oldest)
      this.#opened.set(id, state)
    }
    if (state.backend !== backend || this.#ended.has(state.id)) return undefined
    return state
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
    this.#noteEnd(id)
    this.#otherThreads().postMessage({ ended: id } satisfies ThreadMessage)
  }

  /** Returns the channel to the other threads of this process. */
  #otherThreads(): BroadcastChannel {
    if (this.#channel !== undefined) return this.#channel
    const channel = new BroadcastChannel('sluice mcp sessions')
    channel.onmessage = (event) => this.#onThreadMessage((event as { data: ThreadMessage }).data)
    channel.unref()
    this.#channel = channel
    return channel
  }

  #onThreadMessage(news: ThreadMessage): void {
    if ('ended' in news) this.#noteEnd(news.ended)
    else if ('delivery' in news) this.#waiting.get(news.by)?.(news.delivery)
    else if (news.at === this.#name) {
      const { by } = news
      const delivery =
        'passed' in news
          ? this.#deliver(news.passed)
          : this.#clientOf(news.wanted)
            ? 'taken'
            : 'lost'
      this.#otherThreads().postMessage({ delivery, by } satisfies ThreadMessage)
    }
  }

  // --- clients of the older transport ---

  /** Makes the id of a client with a stream in this thread. The id names the thread. */
  async newStreamId(backend: string): Promise<string> {
    // From now on other threads may send messages for the client.
    this.#otherThreads()
    await this.#nameThread()
    const plain = `${this.#name} ${newSessionId()}`
    return this.#streamSeal.seal(plain, `mcp stream ${backend}`)
  }

  /** Makes the name of this thread known to the process. */
  async #nameThread(): Promise<string> {
    this.#named ??= nameThread(this.#name)
    await this.#named
    return this.#name
  }

  /** Registers a client with a stream in this thread. Returns a function that removes it. */
  addLegacyClient(id: string, client: StreamClient): () => void {
    this.#legacyClients.set(id, client)
    return () => this.#legacyClients.delete(id)
  }

  /** Returns the client with this id if its stream is in this thread. */
  legacyClient(id: string): StreamClient | undefined {
    return this.#legacyClients.get(id)
  }

  /** Sends messages to the thread with the client's stream, if there is one. */
  async passOn(passed: PassedMessages): Promise<Delivery> {
    const { id, backend, principal } = passed
    const plain = this.#streamSeal.open(id, `mcp stream ${backend}`)
    const [at = ''] = plain?.toString().split(' ') ?? []
    if (at === '' || at === this.#name || (await isRunning(at)) === false) return 'lost'
    // Every thread gets a copy of what is sent, so that a body is sent only if its client exists.
    const found = await this.#askThread({ wanted: { id, backend, principal }, at })
    return found === 'taken' ? this.#askThread({ passed, at }) : found
  }

  #askThread(question: ThreadQuestion): Promise<Delivery> {
    const by = newSessionId()
    return new Promise<Delivery>((resolve) => {
      const settle = (delivery: Delivery) => {
        clearTimeout(timer)
        this.#waiting.delete(by)
        resolve(delivery)
      }
      const timer = setTimeout(() => settle('lost'), passTimeoutMs)
      this.#waiting.set(by, settle)
      this.#otherThreads().postMessage({ ...question, by } satisfies ThreadMessage)
    })
  }

  #clientOf({ id, backend, principal }: Omit<PassedMessages, 'texts' | 'client'>) {
    const found = this.#legacyClients.get(id)
    return found?.backend === backend && found.principal === principal ? found : undefined
  }

  #deliver(passed: PassedMessages): Delivery {
    const found = this.#clientOf(passed)
    if (found === undefined) return 'lost'
    return found.receiveFrom(passed.client, passed.texts.map(readMessage)) ? 'taken' : 'full'
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
    this.late.forget(id)
    const [oldest] = this.#ended.size >= maxEndedSessions ? this.#ended.keys() : []
    if (oldest !== undefined) this.#ended.delete(oldest)
    this.#ended.set(id, now())
    this.#watch()
  }

  /** Drops the state of a session in memory. */
  forget(id: string): void {
    const live = this.#live.get(id)
    this.#live.delete(id)
    this.bridge.forget(id)
    this.notices.forget(id)
    for (const one of live?.held.values() ?? []) one.close()
  }

  // --- shutdown ---

  /** Registers a function to call when the process is about to stop. Returns a function that removes it. */
  onStop(callback: () => void): () => void {
    this.#stops.add(callback)
    return () => this.#stops.delete(callback)
  }

  /** Ends streams, so that clients open them again at another proxy. */
  stop(): void {
    for (const end of [...this.#stops]) end()
  }

  // --- configuration changes ---

  /** Registers a function to call after each configuration change. Returns a function that removes it. */
  onChange(callback: () => void): () => void {
    this.#changes.add(callback)
    return () => this.#changes.delete(callback)
  }

  /** Called after each configuration change. */
  changed(): void {
    for (const callback of [...this.#changes]) callback()
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

  /** Streams to clients, which get a comment at each sweep. */
  readonly openStreams: OpenStreams = {
    add: (stream) => {
      this.#streams.add(stream)
      this.#watch()
    },
    delete: (stream) => this.#streams.delete(stream),
  }

  /** Registers a function to call at each sweep. Returns a function that removes it. */
  onSweep(callback: () => void): () => void {
    this.#sweeps.add(callback)
    this.#watch()
    return () => this.#sweeps.delete(callback)
  }

  /** Starts the sweep timer. It stops when there is nothing left to sweep. */
  #watch(): void {
    this.#timer ??= setInterval(() => this.#sweep(), sweepMs).unref()
  }

  #sweep(): void {
    const late = this.#lingering
    this.#lingering = new Set<Flow>()
    for (const flow of late) flow.close()
    for (const callback of [...this.#sweeps]) callback()
    for (const stream of [...this.#streams]) stream.keepAlive()
    const at = now()
    for (const [id, { lastUsed }] of this.#live) {
      if (at - lastUsed < idleMs) break
      this.forget(id)
    }
    for (const [id, since] of this.#ended) {
      if (at - since < endedSessionMs) break
      this.#ended.delete(id)
    }
    const states = this.#live.size + this.#ended.size
    const size = late.size + this.#sweeps.size + this.#streams.size + states
    if (size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
