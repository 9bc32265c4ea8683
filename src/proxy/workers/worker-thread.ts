/**
 * One place in the row of workers: the thread that holds it now, and the next one when it dies.
 * Each thread gets the full configuration first, whenever it starts.
 */
import { Worker } from 'node:worker_threads'
import { timerDelay } from '../../base/timer-delay.ts'
import type { ConfigChannel } from '../../wire/channel.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import { sumSnapshots } from '../telemetry/prometheus.ts'
import { keepYoungRoom } from './idle-trim.ts'
import {
  type FromWorker,
  lastMetrics,
  type ToWorker,
  type WorkerSettings,
  type WorkerState,
} from './worker-messages.ts'

/** Beside this file when run from source, one file of the flat build folder when bundled. */
const entry = import.meta.url.endsWith('.ts')
  ? new URL('./worker.ts', import.meta.url)
  : new URL('./proxy-worker.js', import.meta.url)

const scrapeTimeoutMs = 1_000
/** A thread that lived this long had a reason of its own to die; the next one starts at once. */
const healthyMs = 10_000
const longestRestartMs = 5_000

interface WorkerThreadOptions {
  readonly index: number
  readonly settings: WorkerSettings
  readonly channel: ConfigChannel
  readonly onMessage: (message: FromWorker) => void
  /** The thread has ended without being told to; `restartMs` until the next one. */
  readonly onDeath: (error: Error, restartMs: number) => void
}

export class WorkerThread {
  readonly index: number
  restarts = 0
  /** Undefined until the current thread has answered its first change set. */
  state: WorkerState | undefined
  /** Resolves when the first thread has started, rejects when it died before. */
  readonly started: Promise<void>
  readonly #options: WorkerThreadOptions
  readonly #scrapes = new Map<number, (snapshot: MetricsSnapshot) => void>()
  #worker: Worker | undefined
  #unsubscribe: (() => void) | undefined
  #restart: NodeJS.Timeout | undefined
  #isStopping = false
  #hasStarted = false
  #bornAt = 0
  #quickDeaths = 0
  #scrapeId = 0
  /** What threads that are gone had counted, as far as it was ever read. */
  #buried: MetricsSnapshot = {}
  #latest: MetricsSnapshot = {}
  #settleStarted: { resolve(): void; reject(error: Error): void }
  #onDrained: (() => void) | undefined

  constructor(options: WorkerThreadOptions) {
    this.#options = options
    this.index = options.index
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.started = promise
    this.#settleStarted = { resolve, reject }
    this.#start()
  }

  get isAlive(): boolean {
    return this.#worker !== undefined
  }

  #start(): void {
    this.#bornAt = Date.now()
    this.state = undefined
    keepYoungRoom()
    const worker = new Worker(entry, { workerData: this.#options.settings })
    this.#worker = worker
    let failure: Error | undefined
    worker.on('message', (message: FromWorker) => this.#receive(message))
    worker.on('error', (error: unknown) => {
      failure = error instanceof Error ? error : new Error(String(error))
    })
    worker.on('exit', (code) => {
      this.#ended(failure ?? new Error(`the worker ended with code ${code}`))
    })
  }

  #receive(message: FromWorker): void {
    switch (message.type) {
      case 'started':
        this.#hasStarted = true
        this.#settleStarted.resolve()
        this.#unsubscribe = this.#options.channel.subscribe((update) =>
          this.send({ type: 'config', ...update }),
        )
        break
      case 'state':
        this.state = message.state
        break
      case 'metrics':
        if (message.id === lastMetrics) this.#latest = message.snapshot
        else this.#scrapes.get(message.id)?.(message.snapshot)
        break
      case 'drained':
        this.#onDrained?.()
        break
    }
    this.#options.onMessage(message)
  }

  #ended(error: Error): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#worker = undefined
    this.state = undefined
    this.#onDrained?.()
    if (this.#isStopping) return
    this.#bury()
    if (!this.#hasStarted) {
      // The first thread could not even start: whoever asked for the proxy is told instead.
      this.#isStopping = true
      this.#settleStarted.reject(error)
      return
    }
    this.#quickDeaths = Date.now() - this.#bornAt < healthyMs ? this.#quickDeaths + 1 : 0
    const restartMs =
      this.#quickDeaths <= 1 ? 0 : Math.min(100 * 2 ** this.#quickDeaths, longestRestartMs)
    this.restarts++
    this.#restart = setTimeout(() => this.#start(), restartMs)
    this.#options.onDeath(error, restartMs)
  }

  /** Counters must not fall when a thread is replaced; what is open now is gone with it. */
  #bury(): void {
    const {
      downstream_connections,
      upstream_connections,
      upstream_pool_connections,
      upstream_pool_streams,
      ...counters
    } = this.#latest
    this.#buried = sumSnapshots([this.#buried, counters])
    this.#latest = {}
  }

  send(message: ToWorker): void {
    this.#worker?.postMessage(message)
  }

  /** What this place has counted; the last known where the thread does not answer in time. */
  async metrics(): Promise<MetricsSnapshot> {
    const worker = this.#worker
    if (worker !== undefined && this.#hasStarted) await this.#scrape()
    return sumSnapshots([this.#buried, this.#latest])
  }

  #scrape(): Promise<void> {
    const id = ++this.#scrapeId
    return new Promise((resolve) => {
      const finish = () => {
        clearTimeout(timer)
        this.#scrapes.delete(id)
        resolve()
      }
      const timer = setTimeout(finish, scrapeTimeoutMs)
      this.#scrapes.set(id, (snapshot) => {
        this.#latest = snapshot
        finish()
      })
      this.send({ type: 'scrape', id })
    })
  }

  /** Ends in-flight work as told, then the thread; never takes longer than `maxMs` and a second. */
  async drain(minMs: number, maxMs: number): Promise<void> {
    this.#isStopping = true
    clearTimeout(this.#restart)
    if (this.#worker !== undefined) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timerDelay(maxMs + 1_000))
        this.#onDrained = () => {
          clearTimeout(timer)
          resolve()
        }
        this.send({ type: 'drain', minMs, maxMs })
      })
    }
    await this.stop()
  }

  /** Ends the thread now. */
  async stop(): Promise<void> {
    this.#isStopping = true
    clearTimeout(this.#restart)
    this.#unsubscribe?.()
    await this.#worker?.terminate()
  }
}
