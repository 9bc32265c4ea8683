/** Manages one worker. If its thread dies, a new thread replaces it and gets the full configuration. */
import type { Worker } from 'node:worker_threads'
import type { ConfigChannel } from '../../../control/wire/channel.ts'
import { timerDelay } from '../../../ground/base/timer-delay.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import { countersOf, sumSnapshots } from '../telemetry/snapshots.ts'
import { endThread } from './end-thread.ts'
import { startThread } from './prepared-threads.ts'
import { type FromWorker, lastMetrics, type ToWorker, type WorkerState } from './worker-messages.ts'
import type { WorkerSettings } from './worker-settings.ts'

const scrapeTimeoutMs = 1_000
/** If a thread has lived this long, the next thread starts at once after its death. */
const healthyMs = 10_000
const maxRestartMs = 5_000

interface WorkerThreadOptions {
  readonly index: number
  readonly settings: WorkerSettings
  readonly channel: ConfigChannel
  readonly onMessage: (message: FromWorker) => void
  /** Called when the thread has died. The next thread starts after `restartMs`. */
  readonly onDeath: (error: Error, restartMs: number) => void
}

export class WorkerThread {
  readonly index: number
  restarts = 0
  /** State of the worker; undefined until the current thread has reported it. */
  state: WorkerState | undefined
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
  /** The sums of the last known counters of dead threads. */
  #past: MetricsSnapshot = {}
  #latest: MetricsSnapshot = {}
  readonly #started = Promise.withResolvers<void>()
  #onDrained: (() => void) | undefined

  constructor(options: WorkerThreadOptions) {
    this.#options = options
    this.index = options.index
    this.#start()
  }

  /** Resolves when the first thread has started. Rejects if it dies before. */
  get started(): Promise<void> {
    return this.#started.promise
  }

  get isAlive(): boolean {
    return this.#worker !== undefined
  }

  #start(): void {
    this.#bornAt = Date.now()
    this.state = undefined
    const worker = startThread(this.#options.settings)
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
        this.#started.resolve()
        this.#unsubscribe = this.#subscribe()
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

  #subscribe(): () => void {
    const { channel } = this.#options
    // First, so that no session is accepted that has ended.
    const unsubscribe = channel.subscribeEnded?.((entries) => this.send({ type: 'ended', entries }))
    const unsubscribeConfig = channel.subscribe(
      (update) => this.send({ type: 'config', ...update }),
      this.index,
    )
    return () => {
      unsubscribe?.()
      unsubscribeConfig()
    }
  }

  #ended(error: Error): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#worker = undefined
    this.state = undefined
    this.#onDrained?.()
    if (this.#isStopping) return
    this.#keepCounters()
    if (!this.#hasStarted) {
      // The first thread could not start, so `started` rejects and there is no restart.
      this.#isStopping = true
      this.#started.reject(error)
      return
    }
    this.#quickDeaths = Date.now() - this.#bornAt < healthyMs ? this.#quickDeaths + 1 : 0
    const restartMs =
      this.#quickDeaths <= 1 ? 0 : Math.min(100 * 2 ** this.#quickDeaths, maxRestartMs)
    this.restarts++
    this.#restart = setTimeout(() => this.#start(), restartMs)
    this.#options.onDeath(error, restartMs)
  }

  /** Adds the counters of a dead thread to the past. */
  #keepCounters(): void {
    this.#past = sumSnapshots([this.#past, countersOf(this.#latest)])
    this.#latest = {}
  }

  send(message: ToWorker): void {
    this.#worker?.postMessage(message)
  }

  /**
   * Returns the metrics of the worker. If the thread does not respond in time, they are the last known ones.
   */
  async metrics(): Promise<MetricsSnapshot> {
    const worker = this.#worker
    if (worker !== undefined && this.#hasStarted) await this.#scrape()
    return sumSnapshots([this.#past, this.#latest])
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

  /** Finishes open requests, then ends the thread. Takes at most `maxMs` and a second. */
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

  /** Ends the thread at once. */
  async stop(): Promise<void> {
    this.#isStopping = true
    clearTimeout(this.#restart)
    this.#unsubscribe?.()
    if (this.#worker !== undefined) await endThread(this.#worker)
  }
}
