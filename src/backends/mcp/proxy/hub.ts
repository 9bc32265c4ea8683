/** What the MCP backends of one thread share: the key of sessions, what is known of them, one clock. */
import { BroadcastChannel } from 'node:worker_threads'
import { GatewayError } from '../../../errors/index.ts'
import { CompiledBackends } from '../../../proxy/request/backend-kind.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { now } from '../../../proxy/upstream/choose.ts'
import { type McpMessage, readMessage } from '../message.ts'
import {
  newSessionId,
  SessionSeal,
  type SessionState,
  type TargetSession,
} from '../session-state.ts'
import type { ClientRecord } from './client-view.ts'
import { compileTargets, type McpBackend } from './mcp-targets.ts'
import type { Flow } from './transport.ts'

/** What a session has that its id does not say. */
interface LiveSession {
  /** By target: what was renewed, or begun after the session itself. */
  readonly targets: Map<string, TargetSession | Promise<TargetSession>>
  /** Connections that are kept for the session. */
  readonly held: Map<string, { close(): void }>
  lastUsed: number
}

/** A client whose stream is in one thread, while its messages may come to any. */
interface StreamClient {
  readonly backend: string
  readonly principal: string | undefined
  /** Takes messages that another thread has received; false if there are too many. */
  receiveFrom(client: ClientRecord, messages: readonly McpMessage[]): boolean
}

/** Messages for such a client, and who wants to know whether they were taken. */
interface Passed {
  readonly id: string
  readonly backend: string
  readonly principal: string | undefined
  readonly texts: readonly string[]
  /** The request that brought them: they are judged by its credentials. */
  readonly client: ClientRecord
}

/** What threads tell each other. */
type ThreadNews =
  | { readonly ended: string }
  | { readonly passed: Passed; readonly by: string }
  | { readonly taken: string }

/** Another thread takes messages in so many milliseconds, or there is none that can. */
const passingMs = 1_000
/** Requests of one session that are under way in this thread. */
const mostPending = 256

/** Between looks at what has become old. */
const sweepMs = 15_000
/** Without a message a session keeps nothing in memory; its id goes on being good. */
const idleMs = 30 * 60_000
/** Sessions that are kept in memory; the one that was not used for longest goes first. */
const mostLive = 50_000
/** Ids that were read and need not be read again. */
const mostOpened = 4_096
/** How long an ended session is remembered, so that nobody carries it on. */
const endedMs = 24 * 3_600_000
const mostEnded = 100_000

export type McpBackends = CompiledBackends<'mcp', McpBackend>

export class McpHub {
  readonly backends: McpBackends = new CompiledBackends(
    'mcp',
    (name, { targets, isStateless }, before) => compileTargets(name, targets, isStateless, before),
  )
  readonly #key: () => Uint8Array | undefined
  #seal: { readonly value: Uint8Array; readonly seal: SessionSeal } | undefined
  readonly #opened = new Map<string, SessionState>()
  readonly #live = new Map<string, LiveSession>()
  readonly #ended = new Map<string, number>()
  readonly #sweeps = new Set<() => void>()
  #lingering = new Set<Flow>()
  readonly #pending = new Map<string, number>()
  readonly #waiting = new Map<string, () => void>()
  /** Clients of the older transport whose stream is in this thread. */
  readonly legacyClients = new Map<string, StreamClient>()
  readonly #changes = new Set<() => void>()
  readonly #stops = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #channel: BroadcastChannel | undefined
  /** Of the product. */
  readonly version: string

  constructor({ version, sessionKey }: Pick<GatewayRuntime, 'version' | 'sessionKey'>) {
    this.version = version
    this.#key = sessionKey
  }

  // --- ids ---

  get #sealing(): SessionSeal {
    const value = this.#key()
    if (value === undefined) throw new GatewayError('bug', 'the key of sessions has not arrived')
    if (this.#seal?.value !== value) {
      this.#seal = { value, seal: new SessionSeal(value) }
      this.#opened.clear()
    }
    return this.#seal.seal
  }

  seal(state: SessionState): string {
    return this.#sealing.seal(state)
  }

  /** The session behind an id that a client has sent; undefined where there is none any more. */
  open(id: string, backend: string): SessionState | undefined {
    const seal = this.#sealing
    this.#toOthers()
    let state = this.#opened.get(id)
    if (state === undefined) {
      state = seal.open(id, backend)
      if (state === undefined) return undefined
      const [oldest] = this.#opened.size >= mostOpened ? this.#opened.keys() : []
      if (oldest !== undefined) this.#opened.delete(oldest)
      this.#opened.set(id, state)
    }
    if (state.backend !== backend || this.#ended.has(state.id)) return undefined
    return state
  }

  // --- sessions ---

  /** What is known of a session besides its id; made where there is nothing yet. */
  live({ id }: SessionState): LiveSession {
    let live = this.#live.get(id)
    if (live === undefined) {
      live = { targets: new Map(), held: new Map(), lastUsed: 0 }
      const [oldest] = this.#live.size >= mostLive ? this.#live.keys() : []
      if (oldest !== undefined) this.#forget(oldest)
    } else this.#live.delete(id)
    // In a Map's order the last one is the one that was used last.
    this.#live.set(id, live)
    live.lastUsed = now()
    this.#watch()
    return live
  }

  known({ id }: SessionState): LiveSession | undefined {
    return this.#live.get(id)
  }

  /** The session keeps nothing in memory any more. */
  drop({ id }: SessionState): void {
    this.#forget(id)
  }

  /** Nobody carries the session on, in any thread of this process. */
  end({ id }: SessionState): void {
    this.#noteEnd(id)
    this.#toOthers().postMessage({ ended: id } satisfies ThreadNews)
  }

  /** Threads of one process tell each other which sessions have ended. */
  #toOthers(): BroadcastChannel {
    if (this.#channel !== undefined) return this.#channel
    const channel = new BroadcastChannel('sluice mcp sessions')
    channel.onmessage = (event) => this.#onNews((event as { data: ThreadNews }).data)
    channel.unref()
    this.#channel = channel
    return channel
  }

  #onNews(news: ThreadNews): void {
    if ('ended' in news) this.#noteEnd(news.ended)
    else if ('taken' in news) this.#waiting.get(news.taken)?.()
    else {
      const { id, backend, principal, texts, client } = news.passed
      const found = this.legacyClients.get(id)
      if (found?.backend !== backend || found.principal !== principal) return
      if (found.receiveFrom(client, texts.map(readMessage))) {
        this.#toOthers().postMessage({ taken: news.by } satisfies ThreadNews)
      }
    }
  }

  /** Messages for a client whose stream is in another thread of this process: were they taken? */
  passOn(passed: Passed): Promise<boolean> {
    const by = newSessionId()
    return new Promise((resolve) => {
      const settle = (isTaken: boolean) => {
        clearTimeout(timer)
        this.#waiting.delete(by)
        resolve(isTaken)
      }
      const timer = setTimeout(() => settle(false), passingMs)
      this.#waiting.set(by, () => settle(true))
      this.#toOthers().postMessage({ passed, by } satisfies ThreadNews)
    })
  }

  // --- limits ---

  /** May one more request of the session begin? Each that did has to `leave`. */
  admit({ id }: SessionState): boolean {
    const count = this.#pending.get(id) ?? 0
    if (count >= mostPending) return false
    this.#pending.set(id, count + 1)
    return true
  }

  leave({ id }: SessionState): void {
    const count = this.#pending.get(id) ?? 0
    if (count > 1) this.#pending.set(id, count - 1)
    else this.#pending.delete(id)
  }

  #noteEnd(id: string): void {
    this.#forget(id)
    const [oldest] = this.#ended.size >= mostEnded ? this.#ended.keys() : []
    if (oldest !== undefined) this.#ended.delete(oldest)
    this.#ended.set(id, now())
    this.#watch()
  }

  #forget(id: string): void {
    const live = this.#live.get(id)
    this.#live.delete(id)
    for (const one of live?.held.values() ?? []) one.close()
  }

  // --- the end ---

  /** Called when the process is about to stop, until it is taken back. */
  onStop(end: () => void): () => void {
    this.#stops.add(end)
    return () => this.#stops.delete(end)
  }

  /** Streams without an end are ended: clients take them up again elsewhere. */
  stop(): void {
    for (const end of [...this.#stops]) end()
  }

  // --- change ---

  /** Called after each change of the configuration, until it is taken back. */
  onChange(look: () => void): () => void {
    this.#changes.add(look)
    return () => this.#changes.delete(look)
  }

  /** The configuration has changed. */
  changed(): void {
    for (const look of [...this.#changes]) look()
  }

  // --- time ---

  /** An answer is there, and its connection still has to come to its end. */
  linger(flow: Flow): void {
    this.#lingering.add(flow)
    this.#watch()
  }

  /** Keeping it until the next sweep would keep all that the call has in memory. */
  ended(flow: Flow): void {
    this.#lingering.delete(flow)
  }

  /** Called every now and then until it is taken back. */
  onSweep(look: () => void): () => void {
    this.#sweeps.add(look)
    this.#watch()
    return () => this.#sweeps.delete(look)
  }

  /** One timer for all, and none where nothing gets old. */
  #watch(): void {
    this.#timer ??= setInterval(() => this.#sweep(), sweepMs).unref()
  }

  #sweep(): void {
    const late = this.#lingering
    this.#lingering = new Set<Flow>()
    for (const flow of late) flow.close()
    for (const look of [...this.#sweeps]) look()
    const at = now()
    for (const [id, { lastUsed }] of this.#live) {
      if (at - lastUsed < idleMs) break
      this.#forget(id)
    }
    for (const [id, since] of this.#ended) {
      if (at - since < endedMs) break
      this.#ended.delete(id)
    }
    const size = late.size + this.#sweeps.size + this.#live.size + this.#ended.size
    if (size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
