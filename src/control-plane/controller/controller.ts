/**
 * A controller: health and metrics from the first moment, and a session on the log for as long as
 * that log can be read and written. When it cannot (the stream was deleted, a bug), a new session
 * begins on whatever log is there then. Proxies only notice a stream that ends.
 */
import { hostname } from 'node:os'
import { LockedError } from '../../base/file-lock.ts'
import { prometheusContentType } from '../../base/prometheus.ts'
import { isAboutAddress } from '../../errors/listening.ts'
import {
  type Cluster,
  findInstallOwners,
  type InstallOwners,
  KubeClient,
  KubeError,
} from '../../kube/index.ts'
import { LogError, type LogErrorCode } from '../../log/index.ts'
import {
  type Respond,
  type Routes,
  type SmallServer,
  sendText,
  serve,
} from '../../proxy/admin/server.ts'
import type { ControllerSettings } from '../../settings/controller.ts'
import { Backoff } from '../../watch/kubernetes/backoff.ts'
import { assertFree } from '../../xds/bind.ts'
import { openSession, type Session, type SessionOptions } from '../kubernetes.ts'
import type { OpenedLog } from '../open-log.ts'
import type { Severity } from '../parts.ts'
import { openControllerLog } from './controller-log.ts'
import { Health } from './health.ts'
import { ControllerMetrics } from './metrics.ts'

interface ControllerOptions {
  readonly cluster: Cluster
  readonly settings: ControllerSettings
  readonly version: string
  readonly notify: (severity: Severity, text: string) => void
}

interface RunningController {
  readonly healthAddress: string
  readonly metricsAddress: string
  /** Resolves when the first session serves; rejects if none ever can. */
  readonly started: Promise<void>
  stop(): Promise<void>
}

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
  #servers: readonly (SmallServer | undefined)[] = []
  #session: Session | undefined
  #running: Promise<void> = Promise.resolve()
  readonly #ending = new AbortController()
  #isStopped = false
  /** What has worked once may work again, whatever keeps it from it now. */
  #hasServed = false
  /** Chosen by the system where the setting leaves it open; kept for the sessions to come. */
  #xdsAddress: string

  constructor(options: ControllerOptions) {
    const { settings, version, notify } = options
    this.#options = options
    this.#client = new KubeClient(options.cluster)
    this.#xdsAddress = settings.xdsAddress
    this.#health = new Health(() => notify('info', 'ready'))
    this.#metrics.set('controller_build_info', 1, version)
    this.#metrics.collect(() => this.#metrics.set('controller_ready', this.#health.isReady ? 1 : 0))
    this.started = this.#start.promise
    this.started.catch(() => undefined)
  }

  get healthAddress(): string {
    return this.#servers[0]?.address ?? ''
  }

  get metricsAddress(): string {
    return this.#servers[1]?.address ?? ''
  }

  async listen(): Promise<void> {
    const { settings } = this.#options
    // The server for proxies starts later, but an address that cannot be bound is reported now.
    await assertFree(settings.xdsAddress)
    const metrics: Respond = (_, response) => {
      const text = `${this.#metrics.text()}${this.#session?.xdsMetrics() ?? ''}`
      sendText(response, 200, text, prometheusContentType)
    }
    this.#servers = [
      await listen('health', settings.healthAddress, this.#health.routes()),
      await listen('metrics', settings.metricsAddress, { '/metrics': { GET: metrics } }),
    ]
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stop.resolve(undefined)
    this.#ending.abort()
    await this.#running
    await Promise.all(this.#servers.map((server) => server?.close()))
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
      this.#options.notify('error', `restarting the control loop: ${text}`)
      this.#health.reset(`restarting: ${text}`)
      await this.#pause(backoff.next())
    }
  }

  /** Resolves with the reason when the session has ended. */
  async #runSession(): Promise<unknown> {
    const { settings, notify } = this.#options
    const owners = await this.#findOwners()
    const log = await this.#openLog(owners)
    const session = await openSession(this.#sessionOptions(owners), log, this.#ending.signal)
    try {
      await session.start()
      this.#session = session
      this.#xdsAddress = session.xdsAddress
      if (log.path !== undefined) notify('info', `event log: ${log.path}`)
      notify('info', `xds: ${session.xdsAddress}${settings.xdsTls ? ' (TLS)' : ''}`)
      this.#hasServed = true
      this.#start.resolve()
      return await Promise.race([session.ended, this.#stop.promise])
    } finally {
      this.#session = undefined
      await session.stop()
    }
  }

  /** Without them everything works; only an uninstall leaves something behind. */
  async #findOwners(): Promise<InstallOwners> {
    const { settings, notify } = this.#options
    const { deploymentName: deployment, clusterRoleName: clusterRole } = settings
    const names = { namespace: this.#namespace, deployment, clusterRole }
    try {
      return await findInstallOwners(this.#client, names)
    } catch (error) {
      notify('warn', `cannot read the controller's owner reference: ${String(error)}`)
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
      replica: this.#replica,
      patienceMs: Math.max(5_000, settings.leaseDurationMs),
      ...(nats !== undefined && { nats }),
      ...(logFile !== undefined && { logFile }),
    })
  }

  get #namespace(): string {
    return this.#options.settings.namespace ?? this.#client.namespace ?? 'default'
  }

  get #replica(): string {
    return this.#options.settings.replica ?? hostname()
  }

  #sessionOptions(owners: InstallOwners): SessionOptions {
    const { settings, notify, version } = this.#options
    return {
      version,
      client: this.#client,
      settings: { ...settings, xdsAddress: this.#xdsAddress },
      namespace: this.#namespace,
      owners,
      replica: this.#replica,
      isInCluster:
        settings.kubeconfig === undefined && Boolean(process.env.KUBERNETES_SERVICE_HOST),
      health: this.#health,
      metrics: this.#metrics,
      notify,
    }
  }

  async #pause(waitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, waitMs)
    await Promise.race([promise, this.#stop.promise])
    clearTimeout(timer)
  }
}

/** `:port` means every IPv4 address. */
const listen = (name: string, address: string, routes: Routes) =>
  serve(name, address.replace(/^:/, '0.0.0.0:'), routes)

const hopelessLogs: readonly LogErrorCode[] = ['foreign', 'unsupported', 'unwritable']

/** What no other session will change: wrong usage, and a log that is not ours to use. */
function isHopeless(reason: unknown): boolean {
  if (reason instanceof LockedError) return true
  if (reason instanceof LogError) return hopelessLogs.includes(reason.code)
  if (isAboutAddress(reason)) return true
  if (reason instanceof KubeError) return false
  return (reason as { code?: string } | null)?.code === 'EACCES'
}
