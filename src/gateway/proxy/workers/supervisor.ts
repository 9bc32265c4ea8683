/**
 * Runs a proxy. The main thread carries no traffic: it starts the workers, replaces those that die,
 * sends configuration to them and their answers back, and serves readiness, metrics and admin
 * requests.
 *
 *   channel --config--> workers --state--> answers --ack, reject--> channel
 */

import type { ConfigChannel } from '../../../control/wire/channel.ts'
import { createRateLimiter, createRateMemory } from '../../../engines/core/rate.ts'
import { TicketRotation } from '../../../engines/http/tls/session-tickets.ts'
import { type SmallServer, serve } from '../../../engines/local-server/server.ts'
import { listenHost } from '../../../ground/base/listen-hosts.ts'
import { configDump } from '../admin/config-dump.ts'
import { adminRoutes, type LevelControl, readinessRoutes, statsRoutes } from '../admin/routes.ts'
import { rateTableKeys } from '../rate-buckets.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import { sumSnapshots, writePrometheus } from '../telemetry/prometheus.ts'
import { Answers } from './answers.ts'
import { openRecordFolder, type RecordOptions, type RecordSettings } from './decision-records.ts'
import { PortClaims } from './port-claims.ts'
import { workerCount } from './prepared-threads.ts'
import { laterPending, startupPending, unservedPorts } from './readiness.ts'
import { createSharedCounts, forgetWorker, type SharedCounts } from './shared-counts.ts'
import type { FromWorker, PortName, WorkerRejection } from './worker-messages.ts'
import { type TrafficSettings, trafficSettings } from './worker-settings.ts'
import { WorkerThread } from './worker-thread.ts'

/** Events for the operational log. */
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
  /** A worker met a bug, but still runs. */
  | { readonly type: 'fault'; readonly worker: number; readonly message: string }
  /** Decisions about requests are not recorded. */
  | { readonly type: 'not-recording'; readonly error: Error }
  /** POST /quitquitquit was received: the process should drain the proxy and end. */
  | { readonly type: 'quit-requested' }

export interface ProxyOptions extends TrafficSettings {
  /** Stable name of the proxy in acks and rejections. */
  readonly name?: string
  /** Number of worker threads. `auto` means one per processor if workers can share ports, otherwise one. */
  readonly workers?: number | 'auto'
  /** Addresses are `host:port`, `:port` or `off`. Port 0 selects a free port. */
  readonly adminAddress: string
  readonly statsAddress: string
  readonly readinessAddress: string
  /** What to record of decisions about requests, and where; nothing if omitted. */
  readonly records?: RecordOptions
  /** Publishes the blocks of decision records; if omitted, they are only on disk. */
  readonly publisher?: BlockPublisher
  readonly drain?: { readonly minMs: number; readonly maxMs: number }
  readonly channel: ConfigChannel
  readonly log?: LevelControl
  /** Additional metrics of the process. */
  readonly moreMetrics?: () => MetricsSnapshot
  /** Returns names of missing parts without which the proxy still serves, for the readiness response. */
  readonly without?: () => readonly string[]
  readonly onEvent?: (event: ProxyEvent) => void
}

interface BlockPublisher {
  publish(block: Uint8Array): void
  metrics(): MetricsSnapshot
  close(): Promise<void>
}

export type RunningProxy = Omit<Supervisor, 'start'>

/** Maximum time that the end of the process waits for the flush of the access log. */
const lastFlushMs = 500

class Supervisor {
  readonly #options: ProxyOptions
  readonly #threads: WorkerThread[] = []
  readonly #rateMemory = createRateMemory({ keys: rateTableKeys })
  readonly #rates = createRateLimiter({ shared: this.#rateMemory })
  readonly #rateOwners = new Map<number, number>()
  readonly #counts: SharedCounts
  readonly #claims: PortClaims
  /** The address that workers bind: `0.0.0.0` instead of `::` if the system has no IPv6. */
  #bindAddress = ''
  readonly #answers: Answers
  readonly #tickets: TicketRotation
  readonly #servers: { [Name in 'admin' | 'stats' | 'readiness']?: SmallServer } = {}
  #listening = new Set<PortName>()
  #reported = new Set<string>()
  #wasReady = false
  #record: RecordSettings | undefined
  #isDraining = false
  #drained: Promise<void> | undefined
  readonly #ready = Promise.withResolvers<void>()

  constructor(options: ProxyOptions) {
    this.#options = options
    this.#answers = new Answers(options.name ?? 'local', options.channel)
    this.#tickets = new TicketRotation((secrets) => {
      for (const thread of this.#threads) thread.send({ type: 'tickets', secrets })
    }, options.tlsSessionSeconds)
    const workers = workerCount(options.workers)
    this.#claims = new PortClaims(options.bindAddress, workers > 1)
    this.#counts = createSharedCounts(workers, options.maxBackendRequests !== undefined)
  }

  /** Resolves when the proxy is ready for the first time. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** Bound addresses of the admin, stats and readiness servers; undefined for servers that are off. */
  get addresses() {
    const { admin, stats, readiness } = this.#servers
    return {
      admin: admin?.address,
      stats: stats?.address,
      readiness: readiness?.address,
    }
  }

  /** Number of worker threads. */
  get workers(): number {
    return this.#threads.length
  }

  async start(): Promise<void> {
    process.once('exit', this.#flushLogs)
    await this.#serve()
    this.#bindAddress = await listenHost(this.#options.bindAddress)
    const count = workerCount(this.#options.workers)
    this.#record = this.#openRecords(count)
    for (let index = 0; index < count; index++) this.#threads.push(this.#newThread(index, count))
    await Promise.all(this.#threads.map(({ started }) => started))
  }

  #openRecords(workers: number): RecordSettings | undefined {
    const { records, publisher, name: proxy = 'local' } = this.#options
    if (records === undefined) return undefined
    try {
      const key = openRecordFolder(records)
      return { ...records, proxy, workers, key, isPublished: publisher !== undefined }
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown))
      this.#emit({ type: 'not-recording', error })
      return undefined
    }
  }

  async #serve(): Promise<void> {
    const { adminAddress, statsAddress, readinessAddress, log } = this.#options
    const admin = adminRoutes({
      dump: () => this.#dump(),
      rotateTickets: () => this.#tickets.rotate(),
      quit: () => this.#emit({ type: 'quit-requested' }),
      log,
    })
    const readiness = readinessRoutes({
      pending: () => this.pending(),
      unserved: () => [...unservedPorts(this.#threads), ...(this.#options.without?.() ?? [])],
    })
    this.#servers.readiness = await serve('readiness', readinessAddress, readiness)
    const stats = statsRoutes(() => this.metrics())
    this.#servers.stats = await serve('stats', statsAddress, stats)
    this.#servers.admin = await serve('admin', adminAddress, admin)
  }

  #newThread(index: number, count: number): WorkerThread {
    const rateMemory = this.#rateMemory
    const shared = { rateMemory, counts: this.#counts, reusePort: count > 1 }
    return new WorkerThread({
      index,
      channel: this.#options.channel,
      settings: {
        index,
        ...shared,
        ...trafficSettings(this.#options),
        bindAddress: this.#bindAddress,
        record: this.#record,
      },
      onMessage: (message) => this.#receive(index, message),
      onDeath: (error, restartMs) => {
        this.#releaseRates(index)
        forgetWorker(this.#counts, index)
        this.#claims.releaseAll(index)
        this.#emit({ type: 'worker-died', worker: index, error, restartMs })
        this.#settle()
      },
    })
  }

  /** Releases the rate-limit locks of a thread that died. */
  #releaseRates(index: number): void {
    const owner = this.#rateOwners.get(index)
    this.#rateOwners.delete(index)
    if (owner !== undefined) this.#rates.release(owner)
  }

  #emit(event: ProxyEvent): void {
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
      case 'decisions':
        this.#options.publisher?.publish(message.block)
        break
      case 'fault':
        this.#emit({ type: 'fault', worker, message: message.message })
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

  /** Updates acks, rejections, readiness and the log after a change of a worker's state. */
  #settle(): void {
    if (this.#isDraining) return
    this.#answers.update(this.#threads.map(({ state }) => state))
    this.#emitRejections()
    this.#emitPorts()
    if (this.#wasReady || startupPending(this.#threads).length > 0) return
    this.#wasReady = true
    this.#ready.resolve()
    this.#emit({ type: 'ready' })
  }

  #emitRejections(): void {
    const now = new Set<string>()
    for (const rejection of this.#answers.rejected) {
      const text = `${rejection.key}\0${rejection.message}`
      now.add(text)
      if (!this.#reported.has(text)) this.#emit({ type: 'rejected', rejection })
    }
    this.#reported = now
  }

  #emitPorts(): void {
    // While a worker restarts, its ports are not lost: other workers serve them, or it will bind them soon.
    if (this.#threads.some(({ state }) => state === undefined)) return
    const now = new Set(this.#bound())
    for (const port of now) if (!this.#listening.has(port)) this.#emit({ type: 'listening', port })
    for (const port of this.#listening) if (!now.has(port)) this.#emit({ type: 'port-lost', port })
    this.#listening = now
  }

  /** Returns the TCP ports of listeners that every worker has bound. */
  ports(): number[] {
    return this.#bound()
      .filter((port) => typeof port === 'number')
      .sort((a, b) => a - b)
  }

  /** Returns the ports that every worker has bound. */
  #bound(): PortName[] {
    const [first, ...others] = this.#threads.map(({ state }) => new Set(state?.bound))
    if (first === undefined) return []
    return [...first].filter((port) => others.every((bound) => bound.has(port)))
  }

  /** Returns what the proxy waits for; empty if it is ready. */
  pending(): string[] {
    if (this.#isDraining) return ['shutdown']
    return this.#wasReady ? laterPending(this.#threads) : startupPending(this.#threads)
  }

  /** Returns all metrics in the Prometheus format. */
  async metrics(): Promise<string> {
    const workers = await Promise.all(this.#threads.map((thread) => thread.metrics()))
    return writePrometheus({
      ...sumSnapshots(workers),
      ...this.#own(),
      ...this.#options.publisher?.metrics(),
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

  /**
   * Finishes open requests within the drain deadlines, flushes the access log, and then closes everything.
   */
  drain(): Promise<void> {
    this.#drained ??= this.#drain()
    return this.#drained
  }

  async #drain(): Promise<void> {
    this.#isDraining = true
    const { minMs, maxMs } = this.#options.drain ?? { minMs: 0, maxMs: 5_000 }
    await Promise.all(this.#threads.map((thread) => thread.drain(minMs, maxMs)))
    await this.#options.publisher?.close()
    await this.#closeServers()
  }

  /** Closes everything at once. */
  async close(): Promise<void> {
    this.#isDraining = true
    await Promise.all(this.#threads.map((thread) => thread.stop()))
    await this.#closeServers()
  }

  /** Waits synchronously until the threads have flushed the access log, because they end with the process. */
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
 * Starts the proxy. Resolves when its workers run, which is before it is ready. Rejects with `port_in_use`
 * if the admin, stats or readiness address is taken, or with the error of a worker that did not start.
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
