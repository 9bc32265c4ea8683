/**
 * A controller serves health and metrics from the start, and runs a session on the log as long as the log can
 * be read and written. After a failure (the stream was deleted, a bug), it opens the log again for a new
 * session. Proxies only notice that their stream ends.
 */
import { readFileSync } from 'node:fs'

import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import {
  type Respond,
  type SmallServer,
  sendText,
  serve,
} from '../../../engines/local-server/server.ts'
import { prometheusContentType } from '../../../ground/base/prometheus.ts'
import { isAboutAddress } from '../../../ground/errors/listening.ts'
import type { HasEnded } from '../../../ground/model/ended-sessions.ts'
import type { ControllerSettings } from '../../../ground/settings/controller.ts'
import type { SeriesAnswer, SeriesQuestion } from '../../../past/series/answer.ts'
import {
  findInstallOwners,
  type InstallOwners,
  KubeClient,
  KubeError,
  type KubernetesCluster,
} from '../../kube/index.ts'
import { LogError, type LogErrorCode } from '../../log/index.ts'
import { Backoff } from '../../watch/kubernetes/backoff.ts'
import { assertFree } from '../../xds/bind.ts'
import { tlsFiles } from '../../xds/credentials.ts'
import type { AdmissionServer } from '../admission/server.ts'
import { readTokenIn } from '../admission/token.ts'
import { LockedError } from '../file-lock.ts'
import {
  type ControllerSession,
  type ControllerSessionOptions,
  openSession,
} from '../kubernetes.ts'
import { isDamage, type OpenedLog } from '../open-log.ts'
import type { LogLevel } from '../parts.ts'
import { openControllerLog } from './controller-log.ts'
import { ControllerHealth } from './health.ts'
import { ControllerMetrics } from './metrics.ts'
import { CollectedRecords } from './records.ts'
import { ControllerSeries } from './series.ts'

/** Shorter than the default `timeoutSeconds`, after which the API server admits objects without a warning. */
const admissionTimeoutMs = 4_000

interface ControllerOptions {
  readonly cluster: KubernetesCluster
  readonly settings: ControllerSettings
  readonly version: string
  readonly notify: (severity: LogLevel, text: string) => void
}

export class Controller {
  healthAddress = ''
  metricsAddress = ''
  /** Resolves when the first session serves; rejects if none ever can. */
  readonly started: Promise<void>
  readonly #served = Promise.withResolvers<void>()
  readonly #options: ControllerOptions
  readonly #client: KubeClient
  readonly #metrics = new ControllerMetrics()
  readonly #health: ControllerHealth
  readonly #stop = Promise.withResolvers<undefined>()
  #servers: readonly (SmallServer | undefined)[] = []
  #admission: AdmissionServer | undefined
  #session: ControllerSession | undefined
  /** The time series that proxies report. Sessions share them. */
  #series: ControllerSeries | undefined
  /** The decision records that proxies send. */
  readonly #records: CollectedRecords
  #running: Promise<void> = Promise.resolve()
  readonly #ending = new AbortController()
  /** Whether any session has served. If so, failures of later sessions are retried. */
  #hasServed = false
  /** Address of the xDS server. Later sessions reuse the bound port if the system has chosen it. */
  #xdsAddress: string

  constructor(options: ControllerOptions) {
    const { settings, version, notify } = options
    this.#options = options
    this.#records = new CollectedRecords({ nats: settings.nats, notify })
    this.#client = new KubeClient(options.cluster)
    this.#xdsAddress = settings.xdsAddress
    this.#health = new ControllerHealth(() => notify('info', 'ready'))
    this.#metrics.set('controller_build_info', 1, version)
    this.#metrics.collect(() => this.#metrics.set('controller_ready', this.#health.isReady ? 1 : 0))
    this.started = this.#served.promise
    this.started.catch(() => undefined)
  }

  /** The event log of the current session; undefined while it is being opened. */
  get log(): OpenedLog | undefined {
    return this.#session?.log
  }

  /** Whether a session of a user has ended. @throws Error while the event log is being opened */
  readonly hasEnded: HasEnded = (ids, issuedAt) => {
    if (this.#session === undefined) throw new Error('the event log is not open yet')
    return this.#session.hasEnded(ids, issuedAt)
  }

  /** Answers with the sum of all proxies; undefined while the event log is being opened. */
  async series(question: SeriesQuestion): Promise<SeriesAnswer | undefined> {
    return this.#series?.answer(question)
  }

  /** All metrics in the Prometheus format. */
  metrics(): string {
    return `${this.#metrics.text()}${this.#session?.xds.metrics() ?? ''}`
  }

  /** @throws `port_in_use` or `address_unusable` if an address cannot be bound */
  async start(): Promise<this> {
    const { settings } = this.#options
    // The server for proxies starts later, but an address that cannot be bound is reported now.
    await assertFree(settings.xdsAddress)
    const metrics: Respond = (_, response) => {
      sendText(response, 200, this.metrics(), prometheusContentType)
    }
    this.#servers = [
      await serve('health', settings.healthAddress, this.#health.routes()),
      await serve('metrics', settings.metricsAddress, { '/metrics': { GET: metrics } }),
    ]
    this.#admission = await this.#startAdmission()
    const [health, scrape] = this.#servers
    this.healthAddress = health?.address ?? ''
    this.metricsAddress = scrape?.address ?? ''
    this.#running = this.#run()
    return this
  }

  /** @throws if the certificate of the webhook cannot be used, or the address cannot be bound */
  async #startAdmission(): Promise<AdmissionServer | undefined> {
    const { settings, notify } = this.#options
    const { admissionAddress: address, admissionTlsDir: folder, admissionClientCa } = settings
    if (address === 'off') return undefined
    const { AdmissionServer } = await import('../admission/server.ts')
    const onProblem = (text: string) => notify('warn', text)
    const tls = tlsFiles(join(folder, 'tls.crt'), join(folder, 'tls.key'), { onProblem })
    const clientAuthorities = admissionClientCa && readFileSync(admissionClientCa)
    const server = new AdmissionServer({
      address,
      tls,
      ...(clientAuthorities && { clientAuthorities }),
      token: () => readTokenIn(folder),
      timeoutMs: admissionTimeoutMs,
      notify,
    })
    await server.start()
    notify('info', `admission webhook: https://${server.address}/validate`)
    return server
  }

  async stop(): Promise<void> {
    this.#stop.resolve(undefined)
    this.#ending.abort()
    await this.#running
    await this.#series?.close()
    await this.#records.close()
    await Promise.all([...this.#servers, this.#admission].map((server) => server?.close()))
    this.#options.cluster.close()
  }

  async #run(): Promise<void> {
    const backoff = new Backoff(500, 10_000)
    while (!this.#ending.signal.aborted) {
      const began = performance.now()
      const reason = await this.#runSession().catch((error) => error)
      if (this.#ending.signal.aborted) break
      if (!this.#hasServed && isHopeless(reason)) {
        this.#served.reject(reason)
        return
      }
      if (performance.now() - began > 60_000) backoff.reset()
      this.#metrics.add('session_restarts_total')
      const text = reason instanceof Error ? reason.message : String(reason)
      this.#options.notify('error', `restarting the control loop: ${text}`)
      this.#health.reset(`restarting: ${text}`)
      await after(backoff.next(), undefined, { signal: this.#ending.signal }).catch(() => undefined)
    }
  }

  /** Runs a session. Resolves with the reason why it has ended. */
  async #runSession(): Promise<unknown> {
    const owners = await this.#findOwners()
    const log = await this.#openLog(owners)
    const reason = await this.#runOn(log, owners).catch((error) => error)
    // The next session moves the log aside: only history is lost, since everything is listed again.
    if (isDamage(reason)) log.discard?.(reason.message)
    return reason
  }

  async #runOn(log: OpenedLog, owners: InstallOwners): Promise<unknown> {
    const { settings, notify } = this.#options
    const { nats } = settings
    const folder = nats === undefined && log.path !== undefined ? `${log.path}.series` : undefined
    this.#series ??= new ControllerSeries({ nats, folder, notify })
    const { connect: series, figures } = this.#series
    const parts = { ...this.#sessionOptions(owners), series, figures, records: this.#records }
    const session = await openSession(parts, log, this.#ending.signal)
    try {
      await session.start()
      this.#session = session
      if (this.#admission !== undefined) this.#admission.judge = session.openAdmission()
      this.#xdsAddress = session.xds.address
      if (log.path !== undefined) notify('info', `event log: ${log.path}`)
      notify('info', `xds: ${session.xds.address}${settings.xdsTls ? ' (TLS)' : ''}`)
      this.#hasServed = true
      this.#served.resolve()
      return await Promise.race([session.ended, this.#stop.promise])
    } finally {
      this.#session = undefined
      if (this.#admission !== undefined) this.#admission.judge = undefined
      await session.stop()
    }
  }

  /** Finds the owners of created objects. If there are none, an uninstall leaves those objects behind. */
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
    return openControllerLog({
      settings,
      client: this.#client,
      namespace: this.#namespace,
      owner: local,
      cluster: cluster.server.href,
      replica: this.#replica,
    })
  }

  get #namespace(): string {
    return this.#options.settings.namespace ?? this.#client.namespace ?? 'default'
  }

  get #replica(): string {
    return this.#options.settings.replica ?? hostname()
  }

  #sessionOptions(owners: InstallOwners): Omit<ControllerSessionOptions, 'series' | 'figures'> {
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
}

const unusableLogCodes: readonly LogErrorCode[] = ['foreign', 'unsupported', 'unwritable']

/** Whether another session would fail too: invalid settings, or a log that cannot be used. */
function isHopeless(reason: unknown): boolean {
  if (reason instanceof LockedError) return true
  if (reason instanceof LogError) return unusableLogCodes.includes(reason.code)
  if (isAboutAddress(reason)) return true
  if (reason instanceof KubeError) return false
  return (reason as { code?: string } | null)?.code === 'EACCES'
}
