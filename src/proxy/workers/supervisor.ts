/**
 * The proxy as the rest of the process sees it. The main thread holds no traffic: it starts the
 * workers, replaces those that die, hands configuration to them and their answers back, and serves
 * readiness, metrics and admin.
 *
 *   channel --config--> workers --state--> answers --ack, reject--> channel
 */
import { availableParallelism } from 'node:os'
import { createRateLimiter, createRateMemory } from '../../core/rate.ts'
import type { EngineLimits, StreamLimits } from '../../engine/limits/engine-limits.ts'
import { TicketRotation } from '../../engine/tls/session-tickets.ts'
import type { ConfigChannel } from '../../wire/channel.ts'
import { configDump } from '../admin/config-dump.ts'
import { adminRoutes, type LevelControl, readinessRoutes, statsRoutes } from '../admin/routes.ts'
import { type SmallServer, serve } from '../admin/server.ts'
import { rateTableKeys } from '../rate-buckets.ts'
import type { AccessLogFormat } from '../telemetry/access-line.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import { sumSnapshots, writePrometheus } from '../telemetry/prometheus.ts'
import type { DestinationRules } from '../upstream/destination-rules.ts'
import type { Locality } from '../upstream/locality.ts'
import { Answers } from './answers.ts'
import { PortClaims } from './port-claims.ts'
import { laterPending, startupPending, unservedPorts } from './readiness.ts'
import { createSharedCounts, forgetWorker, type SharedCounts } from './shared-counts.ts'
import type { EdgeSettings, FromWorker, PortName, WorkerRejection } from './worker-messages.ts'
import { workerSettings } from './worker-settings.ts'
import { WorkerThread } from './worker-thread.ts'

/** What happens in the proxy, for the operational log. */
export type ProxyEvent =
  | { readonly type: 'ready' }
  | { readonly type: 'listening'; readonly port: PortName }
  | { readonly type: 'port-lost'; readonly port: PortName }
  | { readonly type: 'rejected'; readonly rejection: WorkerRejection }
  | {
      readonly type: 'worker-died'
      readonly worker: number
      readonly error: Error
      readonly restartMs: number
    }
  /** A bug that the worker survived. */
  | { readonly type: 'fault'; readonly worker: number; readonly message: string }
  /** POST /quitquitquit: whoever started the proxy should drain it and end. */
  | { readonly type: 'quit-requested' }

export interface ProxyOptions {
  /** Stable name in acks and rejections. */
  readonly name?: string
  /** Version of the product, for the build metric and the dump. */
  readonly version?: string
  /** Threads; `auto` is one per processor where they can share ports, else one. */
  readonly workers?: number | 'auto'
  /** IP address of listener ports. */
  readonly bindAddress: string
  /** `host:port`, `:port` or `off`; port 0 takes a free one. */
  readonly adminAddress: string
  readonly statsAddress: string
  readonly readinessAddress: string
  readonly accessLogFd?: number
  readonly accessLogFormat?: AccessLogFormat
  readonly drain?: { readonly minMs: number; readonly maxMs: number }
  readonly destinations: DestinationRules
  readonly clusterDomain?: string
  /** DNS servers that are asked in place of the machine's. */
  readonly nameServers?: readonly string[] | undefined
  readonly locality?: Locality
  /** Most requests under way to one address of a backend; no limit where absent. */
  readonly maxBackendRequests?: number
  /** Limits of what is forwarded unread; the engine's own where absent. */
  readonly streamLimits?: Partial<StreamLimits>
  /** Limits of requests, unless a policy sets them; the engine's own if omitted. */
  readonly limits?: Partial<EngineLimits>
  /** Nobody is believed, and everybody let in, where absent. */
  readonly edge?: EdgeSettings
  /** How long TLS sessions can be resumed, and how often the keys of their tickets change. */
  readonly tlsSessionSeconds?: number
  readonly channel: ConfigChannel
  readonly log?: LevelControl
  /** Metrics of whoever started the proxy, beside its own. */
  readonly moreMetrics?: () => MetricsSnapshot
  /** What readiness names as absent although the proxy serves. */
  readonly without?: () => readonly string[]
  readonly onEvent?: (event: ProxyEvent) => void
}

export interface RunningProxy {
  /** What was bound; absent where off. */
  readonly addresses: {
    readonly admin?: string
    readonly stats?: string
    readonly readiness?: string
  }
  /** Threads that carry traffic. */
  readonly workers: number
  /** Resolves when `pending` is empty for the first time. */
  readonly ready: Promise<void>
  /** What readiness waits for; empty when ready. */
  pending(): string[]
  /** TCP ports of listeners that every worker has bound. */
  ports(): number[]
  /** The text of a scrape. */
  metrics(): Promise<string>
  /** Ends in-flight work within the deadlines, flushes the access log, then closes everything. */
  drain(): Promise<void>
  /** Closes everything now. */
  close(): Promise<void>
}

/** How long the end of the process may be held up for the access log. */
const lastFlushMs = 500

/** Only there the system spreads connections over sockets that share a port. */
const canShare = process.platform === 'linux'

function workerCount(asked: number | 'auto' | undefined): number {
  if (!canShare) return 1
  return asked === 'auto' ? availableParallelism() : (asked ?? 1)
}

class Supervisor implements RunningProxy {
  readonly ready: Promise<void>
  readonly #options: ProxyOptions
  readonly #threads: WorkerThread[] = []
  readonly #rateMemory = createRateMemory({ keys: rateTableKeys })
  readonly #rates = createRateLimiter({ shared: this.#rateMemory })
  readonly #rateOwners = new Map<number, number>()
  readonly #counts: SharedCounts
  readonly #claims: PortClaims
  readonly #answers: Answers
  readonly #tickets: TicketRotation
  readonly #servers: Record<'admin' | 'stats' | 'readiness', SmallServer | undefined> = {
    admin: undefined,
    stats: undefined,
    readiness: undefined,
  }
  #listening = new Set<PortName>()
  #told = new Set<string>()
  #wasReady = false
  #isDraining = false
  #drained: Promise<void> | undefined
  #becomeReady: () => void

  constructor(options: ProxyOptions) {
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ready = promise
    this.#becomeReady = resolve
    this.#answers = new Answers(options.name ?? 'local', options.channel)
    this.#tickets = new TicketRotation((secrets) => {
      for (const thread of this.#threads) thread.send({ type: 'tickets', secrets })
    }, options.tlsSessionSeconds)
    const workers = workerCount(options.workers)
    this.#claims = new PortClaims(options.bindAddress, workers > 1)
    this.#counts = createSharedCounts(workers, options.maxBackendRequests !== undefined)
  }

  get addresses() {
    const { admin, stats, readiness } = this.#servers
    return {
      ...(admin && { admin: admin.address }),
      ...(stats && { stats: stats.address }),
      ...(readiness && { readiness: readiness.address }),
    }
  }

  get workers(): number {
    return this.#threads.length
  }

  async start(): Promise<void> {
    process.once('exit', this.#flushLogs)
    await this.#serve()
    const count = workerCount(this.#options.workers)
    for (let index = 0; index < count; index++) this.#threads.push(this.#newThread(index, count))
    await Promise.all(this.#threads.map(({ started }) => started))
  }

  async #serve(): Promise<void> {
    const { adminAddress, statsAddress, readinessAddress, log } = this.#options
    const admin = adminRoutes({
      dump: () => this.#dump(),
      rotateTickets: () => this.#tickets.rotate(),
      quit: () => this.#tell({ type: 'quit-requested' }),
      ...(log && { log }),
    })
    const readiness = readinessRoutes({
      pending: () => this.pending(),
      unserved: () => [...unservedPorts(this.#threads), ...(this.#options.without?.() ?? [])],
    })
    this.#servers.readiness = await serve('readiness', readinessAddress, readiness)
    this.#servers.stats = await serve(
      'stats',
      statsAddress,
      statsRoutes(() => this.metrics()),
    )
    this.#servers.admin = await serve('admin', adminAddress, admin)
  }

  #newThread(index: number, count: number): WorkerThread {
    const rateMemory = this.#rateMemory
    const shared = { rateMemory, counts: this.#counts, reusePort: count > 1 }
    return new WorkerThread({
      index,
      channel: this.#options.channel,
      settings: { index, ...shared, ...workerSettings(this.#options) },
      onMessage: (message) => this.#receive(index, message),
      onDeath: (error, restartMs) => {
        this.#releaseRates(index)
        forgetWorker(this.#counts, index)
        this.#claims.releaseAll(index)
        this.#tell({ type: 'worker-died', worker: index, error, restartMs })
        this.#settle()
      },
    })
  }

  /** A thread that died in the middle of a limit must not make the others wait for it. */
  #releaseRates(index: number): void {
    const owner = this.#rateOwners.get(index)
    this.#rateOwners.delete(index)
    if (owner !== undefined) this.#rates.release(owner)
  }

  #tell(event: ProxyEvent): void {
    this.#options.onEvent?.(event)
  }

  #receive(worker: number, message: FromWorker): void {
    switch (message.type) {
      case 'started':
        this.#rateOwners.set(worker, message.rateOwner)
        this.#threads[worker]?.send({ type: 'tickets', secrets: this.#tickets.secrets })
        break
      case 'claim':
        this.#claim(worker, message.port)
        break
      case 'released':
        this.#claims.release(message.port, worker)
        break
      case 'fault':
        this.#tell({ type: 'fault', worker, message: message.message })
        break
      case 'state':
        this.#settle()
        break
    }
  }

  async #claim(worker: number, port: PortName): Promise<void> {
    const problem = await this.#claims.claim(port, worker)
    const answer = { type: 'claimed', port } as const
    this.#threads[worker]?.send(problem === undefined ? answer : { ...answer, problem })
  }

  /** Brings acks, rejections, readiness and the log in step with the states of the workers. */
  #settle(): void {
    if (this.#isDraining) return
    this.#answers.update(this.#threads.map(({ state }) => state))
    this.#tellRejections()
    this.#tellPorts()
    if (this.#wasReady || startupPending(this.#threads).length > 0) return
    this.#wasReady = true
    this.#becomeReady()
    this.#tell({ type: 'ready' })
  }

  #tellRejections(): void {
    const now = new Set<string>()
    for (const rejection of this.#answers.rejected) {
      const text = `${rejection.key}\0${rejection.message}`
      now.add(text)
      if (!this.#told.has(text)) this.#tell({ type: 'rejected', rejection })
    }
    this.#told = now
  }

  #tellPorts(): void {
    // While a worker starts again the ports are served by the others, or will be in a moment.
    if (this.#threads.some(({ state }) => state === undefined)) return
    const now = new Set(this.#bound())
    for (const port of now) if (!this.#listening.has(port)) this.#tell({ type: 'listening', port })
    for (const port of this.#listening) if (!now.has(port)) this.#tell({ type: 'port-lost', port })
    this.#listening = now
  }

  ports(): number[] {
    return this.#bound()
      .filter((port) => typeof port === 'number')
      .sort((a, b) => a - b)
  }

  /** What every worker has bound. */
  #bound(): PortName[] {
    const [first, ...others] = this.#threads.map(({ state }) => new Set(state?.bound))
    if (first === undefined) return []
    return [...first].filter((port) => others.every((bound) => bound.has(port)))
  }

  pending(): string[] {
    if (this.#isDraining) return ['shutdown']
    return this.#wasReady ? laterPending(this.#threads) : startupPending(this.#threads)
  }

  async metrics(): Promise<string> {
    const workers = await Promise.all(this.#threads.map((thread) => thread.metrics()))
    return writePrometheus({
      ...sumSnapshots(workers),
      ...this.#own(),
      ...this.#options.moreMetrics?.(),
    })
  }

  #own(): MetricsSnapshot {
    const one = (value: number, labels: string[] = []) => [{ labels, values: [value] }]
    const rejected = new Map<string, number>()
    for (const { code } of this.#answers.rejected) rejected.set(code, (rejected.get(code) ?? 0) + 1)
    const { user, system } = process.cpuUsage()
    return {
      build_info: one(1, [this.#options.version ?? 'unknown']),
      config_sequence: one(this.#answers.watermark),
      config_rejected_resources: [...rejected].flatMap(([code, count]) => one(count, [code])),
      listener_ports_unbound: one(unservedPorts(this.#threads).length),
      workers: one(this.#threads.filter(({ isAlive }) => isAlive).length),
      worker_restarts_total: one(this.#threads.reduce((sum, { restarts }) => sum + restarts, 0)),
      process_resident_memory_bytes: one(process.memoryUsage.rss()),
      process_cpu_seconds_total: one((user + system) / 1e6),
    }
  }

  #dump(): string {
    return configDump(this.#options.channel, {
      version: this.#options.version ?? 'unknown',
      sequence: this.#answers.watermark,
      rejected: this.#answers.rejected,
      workers: this.#threads.map(({ index, state }) => ({
        index,
        sequence: state?.sequence ?? -1,
      })),
    })
  }

  drain(): Promise<void> {
    this.#drained ??= this.#drain()
    return this.#drained
  }

  async #drain(): Promise<void> {
    this.#isDraining = true
    const { minMs, maxMs } = this.#options.drain ?? { minMs: 0, maxMs: 5_000 }
    await Promise.all(this.#threads.map((thread) => thread.drain(minMs, maxMs)))
    await this.#closeServers()
  }

  async close(): Promise<void> {
    this.#isDraining = true
    await Promise.all(this.#threads.map((thread) => thread.stop()))
    await this.#closeServers()
  }

  /** Threads end with the process, without a last word: they are given the time for one here. */
  readonly #flushLogs = (): void => {
    const gate = new Int32Array(new SharedArrayBuffer(4))
    const alive = this.#threads.filter(({ isAlive }) => isAlive)
    for (const thread of alive) thread.send({ type: 'flush', gate })
    const deadline = performance.now() + lastFlushMs
    for (let done = 0; done < alive.length; done = Atomics.load(gate, 0)) {
      if (Atomics.wait(gate, 0, done, deadline - performance.now()) === 'timed-out') return
    }
  }

  async #closeServers(): Promise<void> {
    process.off('exit', this.#flushLogs)
    this.#tickets.stop()
    const { admin, stats, readiness } = this.#servers
    await Promise.all([admin, stats, readiness].map((server) => server?.close()))
  }
}

/**
 * Starts the proxy; resolves when its workers run, which is before it is ready. Rejects with
 * `port_in_use` where one of its own three addresses is taken, or with what kept a worker from
 * starting.
 */
export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const supervisor = new Supervisor(options)
  try {
    await supervisor.start()
    return supervisor
  } catch (error) {
    await supervisor.close()
    throw error
  }
}
