/**
 * A controller: health and metrics from the first moment, and a session on the log for as long as
 * that log can be gone on with. When it cannot (the stream was deleted, a bug), a new session begins
 * on whatever log is there then. Proxies notice no more than a stream that ends.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { LockedError } from '../../base/file-lock.ts'
import { isAboutAddress } from '../../errors/listening.ts'
import {
  type Cluster,
  findInstallOwners,
  type InstallOwners,
  KubeClient,
  KubeError,
} from '../../kube/index.ts'
import { LogError, type LogErrorCode } from '../../log/index.ts'
import type { ControllerSettings } from '../../settings/controller.ts'
import { Backoff } from '../../watch/kubernetes/backoff.ts'
import { kubernetesSource } from '../../watch/kubernetes/source.ts'
import { assertFree } from '../../xds/bind.ts'
import { Session } from '../kubernetes.ts'
import type { OpenedLog } from '../open-log.ts'
import { beginState, whileHolding } from '../restore.ts'
import type { RestoredState } from '../stored-state.ts'
import { openControllerLog } from './controller-log.ts'
import { Health } from './health.ts'
import { type Endpoint, serveEndpoint } from './http-endpoint.ts'
import { ControllerMetrics } from './metrics.ts'
import { openLease } from './open-lease.ts'
import type { SessionOptions } from './session-options.ts'

export interface ControllerOptions {
  readonly cluster: Cluster
  readonly settings: ControllerSettings
  readonly version: string
  readonly say: (severity: 'debug' | 'info' | 'warn' | 'error', text: string) => void
}

export interface RunningController {
  readonly healthAddress: string
  readonly metricsAddress: string
  /** Resolves when the first session serves; rejects where it can never. */
  readonly started: Promise<void>
  stop(): Promise<void>
}

const prometheusType = 'text/plain; version=0.0.4; charset=utf-8'

/** @throws `port_in_use` or `address_unusable` where an address cannot be bound */
export async function startController(options: ControllerOptions): Promise<RunningController> {
  const controller = new Controller(options)
  await controller.listen()
  return controller
}

class Controller implements RunningController {
  readonly started: Promise<void>
  readonly #start = Promise.withResolvers<void>()
  readonly #options: ControllerOptions
  readonly #client: KubeClient
  readonly #metrics = new ControllerMetrics()
  readonly #health: Health
  readonly #stop = Promise.withResolvers<undefined>()
  #endpoints: Endpoint[] = []
  #session: Session | undefined
  #running: Promise<void> = Promise.resolve()
  readonly #ending = new AbortController()
  #isStopped = false
  /** What has worked once may work again, whatever keeps it from it now. */
  #hasServed = false
  /** Chosen by the system where the setting leaves it open; kept for the sessions to come. */
  #xdsAddress: string

  constructor(options: ControllerOptions) {
    const { settings, version, say } = options
    this.#options = options
    this.#client = new KubeClient(options.cluster)
    this.#xdsAddress = settings.xdsAddress
    this.#health = new Health(() => say('info', 'ready'))
    this.#metrics.set('controller_build_info', 1, version)
    this.#metrics.collect(() => this.#metrics.set('controller_ready', this.#health.isReady ? 1 : 0))
    this.started = this.#start.promise
    this.started.catch(() => undefined)
  }

  get healthAddress(): string {
    return this.#endpoints[0]?.address ?? ''
  }

  get metricsAddress(): string {
    return this.#endpoints[1]?.address ?? ''
  }

  async listen(): Promise<void> {
    const { settings } = this.#options
    // The server for proxies comes later, when the log was read: who gave its address is told now.
    await assertFree(settings.xdsAddress)
    const health = await serveEndpoint('health', settings.healthAddress, (path) =>
      this.#health.answer(path),
    )
    const metrics = await serveEndpoint('metrics', settings.metricsAddress, (path) => {
      if (path !== '/metrics') return undefined
      const text = `${this.#metrics.text()}${this.#session?.xdsMetrics() ?? ''}`
      return { status: 200, text, contentType: prometheusType }
    })
    this.#endpoints = [health, metrics]
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stop.resolve(undefined)
    this.#ending.abort()
    await this.#running
    await Promise.all(this.#endpoints.map((endpoint) => endpoint.close()))
    this.#options.cluster.close()
  }

  async #run(): Promise<void> {
    const backoff = new Backoff(500, 10_000)
    while (!this.#isStopped) {
      const began = performance.now()
      const reason = await this.#runSession().catch((error) => error)
      if (this.#isStopped) break
      if (!this.#hasServed && isHopeless(reason)) {
        this.#start.reject(reason)
        return
      }
      if (performance.now() - began > 60_000) backoff.reset()
      this.#metrics.add('session_restarts_total')
      const text = reason instanceof Error ? reason.message : String(reason)
      this.#options.say('error', `the control plane begins anew: ${text}`)
      this.#health.reset(`beginning anew: ${text}`)
      await this.#pause(backoff.next())
    }
  }

  /** Resolves with the reason when the session has ended. */
  async #runSession(): Promise<unknown> {
    const { settings, say } = this.#options
    const owners = await this.#findOwners()
    const opened = await this.#openLog(owners)
    for (const notice of opened.notices) say('warn', notice)
    let session: Session
    try {
      const sessionOptions = this.#sessionOptions(owners)
      session = new Session(sessionOptions, opened, await this.#restore(opened, sessionOptions))
    } catch (error) {
      await opened.close()
      throw error
    }
    try {
      await session.start()
      this.#session = session
      this.#xdsAddress = session.xdsAddress
      if (opened.path !== undefined) say('info', `event log: ${opened.path}`)
      say('info', `xds: ${session.xdsAddress}${settings.xdsTls ? ' (TLS)' : ''}`)
      this.#hasServed = true
      this.#start.resolve()
      return await Promise.race([session.ended, this.#stop.promise])
    } finally {
      this.#session = undefined
      await session.stop()
    }
  }

  /** What a replica that has the state notices within seconds; who takes the lease from it has it too. */
  #restore({ log }: OpenedLog, options: SessionOptions): Promise<RestoredState> {
    const { settings, say } = this.#options
    const { leaseDurationMs } = settings
    const identity = `${options.replica}_${randomUUID().slice(0, 8)}`
    return beginState({
      log,
      source: kubernetesSource,
      patienceMs: settings.nats === undefined ? 0 : 2 * leaseDurationMs,
      alone: (work) =>
        whileHolding((lease) => openLease(options, { ...lease, identity }), leaseDurationMs, work),
      onWait: (reason) => this.#health.set('log', reason ?? 'being read'),
      say: (text) => say('warn', text),
      signal: this.#ending.signal,
    })
  }

  /** Without them everything works; only an uninstall leaves something behind. */
  async #findOwners(): Promise<InstallOwners> {
    const { settings, say } = this.#options
    const { deploymentName: deployment, clusterRoleName: clusterRole } = settings
    const names = { namespace: this.#namespace, deployment, clusterRole }
    try {
      return await findInstallOwners(this.#client, names)
    } catch (error) {
      say('warn', `what owns the objects of this controller cannot be read: ${String(error)}`)
      return {}
    }
  }

  #openLog({ local }: InstallOwners): Promise<OpenedLog> {
    const { settings, cluster } = this.#options
    const { nats, logFile } = settings
    return openControllerLog({
      client: this.#client,
      namespace: this.#namespace,
      owner: local,
      cluster: cluster.server.href,
      patienceMs: Math.max(5_000, settings.leaseDurationMs),
      ...(nats !== undefined && { nats }),
      ...(logFile !== undefined && { logFile }),
    })
  }

  get #namespace(): string {
    return this.#options.settings.namespace ?? this.#client.namespace ?? 'default'
  }

  #sessionOptions(owners: InstallOwners): SessionOptions {
    const { settings, say, version } = this.#options
    return {
      version,
      client: this.#client,
      settings: { ...settings, xdsAddress: this.#xdsAddress },
      namespace: this.#namespace,
      owners,
      replica: settings.replica ?? hostname(),
      isInCluster:
        settings.kubeconfig === undefined && Boolean(process.env.KUBERNETES_SERVICE_HOST),
      health: this.#health,
      metrics: this.#metrics,
      say,
    }
  }

  async #pause(waitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, waitMs)
    await Promise.race([promise, this.#stop.promise])
    clearTimeout(timer)
  }
}

const hopelessLogs: readonly LogErrorCode[] = ['foreign', 'unsupported', 'unwritable']

/** What no other session will change: wrong usage, and a log that is not ours to use. */
function isHopeless(reason: unknown): boolean {
  if (reason instanceof LockedError) return true
  if (reason instanceof LogError) return hopelessLogs.includes(reason.code)
  if (isAboutAddress(reason)) return true
  if (reason instanceof KubeError) return false
  return (reason as { code?: string } | null)?.code === 'EACCES'
}
