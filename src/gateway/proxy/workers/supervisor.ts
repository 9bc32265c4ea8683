/**
 * Runs a proxy. The main thread carries no traffic: it starts the workers, replaces those that die,
 * sends configuration to them and their acknowledgements back, and serves readiness, metrics and admin
 * requests.
 *
 *   channel --config--> workers --state--> acknowledgements --ack, reject--> channel
 */

import { TicketRotation } from '../../../engines/http/tls/session-tickets.ts'
import { type SmallServer, serve } from '../../../engines/local-server/server.ts'
import { listenHost } from '../../../ground/base/listen-hosts.ts'
import type { SeriesQuestion } from '../../../past/series/answer.ts'
import { configDump } from '../admin/config-dump.ts'
import { adminRoutes, readinessRoutes, statsRoutes } from '../admin/routes.ts'
import { ProxyBudgets } from '../budgets/proxy-budgets.ts'
import { expose } from '../telemetry/exposition.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import { MetricExporter } from '../telemetry/otlp/metric-exporter.ts'
import { processMetrics } from '../telemetry/process-metrics.ts'
import { writePrometheus } from '../telemetry/prometheus.ts'
import { sumSnapshots } from '../telemetry/snapshots.ts'
import { Acknowledgements } from './acknowledgements.ts'
import { sendReply } from './answer-replies.ts'
import { openRecordFolder, type RecordSettings } from './decision-records.ts'
import { GrantAnswers } from './grant-answers.ts'
import { flushLogs } from './last-flush.ts'
import { ModelCatalogs } from './model-catalogs.ts'
import { PortClaims } from './port-claims.ts'
import { workerCount } from './prepared-threads.ts'
import type { ProxyEvent, ProxyOptions } from './proxy-options.ts'
import { laterPending, startupPending, unservedPorts } from './readiness.ts'
import { SeriesRecorder } from './series-recorder.ts'
import { createSharedCounts, forgetWorker, type SharedCounts } from './shared-counts.ts'
import { createSharedRates, RateLocks } from './shared-rates.ts'
import type { FromWorker, PortName } from './worker-messages.ts'
import { trafficSettings } from './worker-settings.ts'
import { WorkerThread } from './worker-thread.ts'

export type RunningProxy = Omit<Supervisor, 'start'>

class Supervisor {
  readonly #options: ProxyOptions
  /** The name under which the control plane, records and the ledger know the proxy. */
  readonly #name: string
  readonly #threads: WorkerThread[] = []
  readonly #rateMemory = createSharedRates()
  readonly #rateLocks = new RateLocks(this.#rateMemory)
  readonly #rateOwners = new Map<number, readonly number[]>()
  readonly #counts: SharedCounts
  readonly #budgets: ProxyBudgets
  readonly #claims: PortClaims
  /** The address that workers bind: `0.0.0.0` instead of `::` if the system has no IPv6. */
  #bindAddress = ''
  readonly #acknowledgements: Acknowledgements
  readonly #tickets: TicketRotation
  readonly #catalogs: ModelCatalogs
  readonly #grants: GrantAnswers
  readonly #servers: { [Name in 'admin' | 'stats' | 'readiness']?: SmallServer } = {}
  #listening = new Set<PortName>()
  #reported = new Set<string>()
  #wasReady = false
  #record: RecordSettings | undefined
  readonly #series: SeriesRecorder
  readonly #exporter: MetricExporter | undefined
  #isDraining = false
  #drained: Promise<void> | undefined
  readonly #ready = Promise.withResolvers<void>()

  constructor(options: ProxyOptions) {
    this.#options = options
    this.#name = options.name ?? 'local'
    this.#acknowledgements = new Acknowledgements(this.#name, options.channel)
    this.#tickets = new TicketRotation((secrets) => {
      for (const thread of this.#threads) thread.send({ type: 'tickets', secrets })
    }, options.tlsSessionSeconds)
    const paths = options.modelCatalogs ?? []
    this.#catalogs = new ModelCatalogs(paths, this.#threads, (event) => this.#emit(event))
    this.#grants = new GrantAnswers(options.grants, (event) => this.#emit(event))
    const workers = workerCount(options.workers)
    this.#budgets = new ProxyBudgets(
      { proxy: this.#name, ...options.ledger },
      (worker, message) => {
        for (const thread of this.#threads) {
          if (worker === undefined || worker === thread.index) thread.send(message)
        }
      },
    )
    this.#series = new SeriesRecorder({
      folder: options.seriesFolder,
      connect: options.connectSeries,
      scrape: () => this.#workerMetrics(),
      onProblem: (error) => this.#emit({ type: 'series-not-written', error }),
    })
    this.#exporter =
      options.metricExport &&
      new MetricExporter({
        ...options.metricExport,
        version: options.version ?? 'unknown',
        scrape: () => this.#allMetrics(),
        onProblem: (message) => this.#emit({ type: 'metrics-not-exported', message }),
      })
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
    return { admin: admin?.address, stats: stats?.address, readiness: readiness?.address }
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
    this.#series.start()
    this.#exporter?.start()
  }

  #openRecords(workers: number): RecordSettings | undefined {
    const { records, publisher, recordExporter, reportRecords } = this.#options
    if (records === undefined) return undefined
    try {
      const key = openRecordFolder(records)
      const isPublished = (publisher ?? recordExporter ?? reportRecords) !== undefined
      return { ...records, proxy: this.#name, workers, key, isPublished }
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
      series: this.series,
      log,
    })
    const readiness = readinessRoutes({
      pending: () => this.pending(),
      unserved: () => [...unservedPorts(this.#threads), ...(this.#options.without?.() ?? [])],
    })
    this.#servers.readiness = await serve('readiness', readinessAddress, readiness)
    const stats = async (accept?: string) => expose(await this.#allMetrics(), accept)
    this.#servers.stats = await serve('stats', statsAddress, statsRoutes(stats))
    this.#servers.admin = await serve('admin', adminAddress, admin)
  }

  #newThread(index: number, count: number): WorkerThread {
    const rateMemory = this.#rateMemory
    const own = { bindAddress: this.#bindAddress, record: this.#record }
    const shared = { ...own, rateMemory, counts: this.#counts, reusePort: count > 1 }
    return new WorkerThread({
      index,
      channel: this.#options.channel,
      settings: { ...trafficSettings(this.#options), index, ...shared },
      onMessage: (message) => this.#receive(index, message),
      onDeath: (error, restartMs) => {
        this.#releaseRates(index)
        this.#budgets.workerDied(index)
        forgetWorker(this.#counts, index)
        this.#claims.releaseAll(index)
        this.#emit({ type: 'worker-died', worker: index, error, restartMs })
        this.#settle()
      },
    })
  }

  /** Releases the rate-limit locks of a thread that died. */
  #releaseRates(index: number): void {
    const owners = this.#rateOwners.get(index)
    this.#rateOwners.delete(index)
    if (owners !== undefined) this.#rateLocks.release(owners)
  }

  readonly #emit = (event: ProxyEvent): void => this.#options.onEvent?.(event)

  #receive(worker: number, message: FromWorker): void {
    switch (message.type) {
      case 'started':
        this.#rateOwners.set(worker, message.rateOwners)
        this.#threads[worker]?.send({ type: 'tickets', secrets: this.#tickets.secrets })
        this.#threads[worker]?.send(this.#catalogs.message)
        break
      case 'claim':
        this.#claim(worker, message.port)
        break
      case 'released':
        this.#claims.release(message.port, worker)
        break
      case 'budgets':
      case 'budget-account':
        this.#budgets.receive(worker, message)
        break
      case 'list':
        this.#options.reportList?.(message.report)
        break
      case 'ended':
        this.#options.reportEnded?.(message.report)
        break
      case 'answer':
        void sendReply(this.#threads[worker], this.#options.answers, message)
        break
      case 'grant':
        void this.#grants.answer(message).then((answer) => this.#threads[worker]?.send(answer))
        break
      case 'decisions':
        this.#options.publisher?.publish(message.block)
        this.#options.recordExporter?.publish(message.block)
        this.#options.reportRecords?.(message.block, message.isSample)
        break
      case 'health':
        this.#emit({ type: 'health', change: message.change })
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
    this.#acknowledgements.update(this.#threads.map(({ state }) => state))
    this.#emitRejections()
    this.#emitPorts()
    if (this.#wasReady || startupPending(this.#threads).length > 0) return
    this.#wasReady = true
    this.#ready.resolve()
    this.#emit({ type: 'ready' })
  }

  #emitRejections(): void {
    const now = new Set<string>()
    for (const rejection of this.#acknowledgements.rejected) {
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
    return writePrometheus(await this.#allMetrics())
  }

  async #allMetrics(): Promise<MetricsSnapshot> {
    return {
      ...(await this.#workerMetrics()),
      ...this.#own(),
      ...this.#exporter?.metrics(),
      ...this.#options.publisher?.metrics(),
      ...this.#options.recordExporter?.metrics(),
      ...this.#options.moreMetrics?.(),
    }
  }

  readonly #workerMetrics = async () => sumSnapshots(await this.metricsOfWorkers())

  readonly metricsOfWorkers = () => Promise.all(this.#threads.map((thread) => thread.metrics()))

  /** Returns time series, including everything until now. */
  readonly series = (question: SeriesQuestion) => this.#series.answer(question)

  #own(): MetricsSnapshot {
    const one = (value: number, labels: string[] = []) => [{ labels, values: [value] }]
    const rejected = Map.groupBy(this.#acknowledgements.rejected, ({ code }) => code)
    return {
      ...processMetrics(),
      build_info: one(1, [this.#options.version ?? 'unknown']),
      config_sequence: one(this.#acknowledgements.watermark),
      config_rejected_resources: [...rejected].flatMap(([code, all]) => one(all.length, [code])),
      listener_ports_unbound: one(unservedPorts(this.#threads).length),
      workers: one(this.#threads.filter(({ isAlive }) => isAlive).length),
      worker_restarts_total: one(this.#threads.reduce((sum, { restarts }) => sum + restarts, 0)),
    }
  }

  #dump(): string {
    return configDump(this.#options.channel, {
      version: this.#options.version ?? 'unknown',
      sequence: this.#acknowledgements.watermark,
      rejected: this.#acknowledgements.rejected,
      workers: this.#threads.map(({ index, state }) => ({
        index,
        sequence: state?.sequence ?? -1,
      })),
    })
  }

  /** Finishes open requests within the drain deadlines, flushes the access log, and then closes everything. */
  drain(): Promise<void> {
    this.#drained ??= this.#drain()
    return this.#drained
  }

  async #drain(): Promise<void> {
    this.#isDraining = true
    const { minMs, maxMs } = this.#options.drain ?? { minMs: 0, maxMs: 5_000 }
    await Promise.all(this.#threads.map((thread) => thread.drain(minMs, maxMs)))
    await Promise.all([this.#series.close(), this.#exporter?.close()])
    const { publisher, recordExporter, grants, answers } = this.#options
    const open = [this.#budgets, publisher, recordExporter, grants, answers]
    for (const one of open) await one?.close()
    await this.#closeServers()
  }

  /** Closes everything at once. */
  async close(): Promise<void> {
    this.#isDraining = true
    await Promise.all(this.#threads.map((thread) => thread.stop()))
    await this.#series.close()
    await this.#budgets.close()
    await this.#closeServers()
  }

  readonly #flushLogs = (): void => flushLogs(this.#threads)

  async #closeServers(): Promise<void> {
    process.off('exit', this.#flushLogs)
    this.#tickets.stop()
    this.#catalogs.stop()
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
