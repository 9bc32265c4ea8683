/**
 * One run: a NATS server, three replicas of a controller, three proxies with traffic, and the changes
 * of a plan, on an API server that all runs share. Everything is a process of its own.
 */

import { hash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { restoreState } from '../../src/control/plane/stored-state.ts'
import { kubernetesSource } from '../../src/control/watch/kubernetes/source.ts'
import { canonicalJson } from '../../src/ground/base/canonical.ts'
import { startApiServer } from '../support/api-server.ts'
import { controllerRules, gateway, TestCluster } from '../support/cluster.ts'
import { ProxyProcess, stablePort } from '../support/cluster-rig.ts'
import { ControllerProcess } from '../support/controller.ts'
import { allConditions } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import { staticBackend } from '../support/manifests.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'
import { type Plan, routeTo } from './plan.ts'
import { steadyRoute, Traffic } from './traffic.ts'
import { auditSize, judgeWrites, type StatusWrite, statusWrites } from './writes.ts'

const replicaNames = ['a', 'b', 'c'] as const
const proxyAddresses = ['127.0.0.1', '127.0.0.2', '127.0.0.3'] as const
/** A run that is not at rest after this time has failed. */
const patienceMs = 300_000

/** What all runs share. */
export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-faults-'))
  readonly cluster: TestCluster
  readonly upstream: Upstream
  readonly port: number
  readonly tokenFile: string
  /** A kubeconfig with its own service account for each replica, which identifies its writes. */
  readonly kubeconfigs: ReadonlyMap<string, string>

  private constructor(parts: {
    cluster: TestCluster
    upstream: Upstream
    port: number
    token: string
    kubeconfigs: ReadonlyMap<string, string>
  }) {
    this.cluster = parts.cluster
    this.upstream = parts.upstream
    this.port = parts.port
    this.kubeconfigs = parts.kubeconfigs
    this.tokenFile = join(this.folder, 'token')
    writeFileSync(this.tokenFile, parts.token)
  }

  /** Needs etcd, kube-apiserver, nats-server and the CRDs of the Gateway API. */
  static async start(): Promise<Stage> {
    const upstream = await startUpstream()
    const cluster = await new TestCluster(await startApiServer({ isAudited: true })).install()
    const port = await stablePort()
    const listeners = [{ name: 'http', port, protocol: 'HTTP' }]
    await cluster.applyAll([
      staticBackend('shop', upstream.port),
      gateway('edge', 'default', { listeners }),
      routeTo(steadyRoute, 0),
    ])
    const kubeconfigs = new Map<string, string>()
    for (const name of replicaNames) {
      kubeconfigs.set(name, await cluster.account(`replica-${name}`, controllerRules()))
    }
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    await cluster.server.request('POST', accounts, { metadata: { name: 'edge' } })
    const issued = await cluster.server.request('POST', `${accounts}/edge/token`, {
      spec: { audiences: ['sluice'], expirationSeconds: 86_400 },
    })
    return new Stage({ cluster, upstream, port, token: issued.body.status.token, kubeconfigs })
  }

  /** Takes away what a run has made. */
  async clear(plan: Plan): Promise<void> {
    const all = new Set(
      plan.changes.map((change) =>
        change.kind === 'delete'
          ? `${change.of}/${change.name}`
          : `${change.object.kind}/${change.object.metadata.name}`,
      ),
    )
    for (const key of all) {
      const [kind = '', name = ''] = key.split('/')
      await this.cluster.delete(kind, name)
    }
  }

  async end(): Promise<void> {
    await this.upstream.close()
    await this.cluster.server.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export interface RunResult {
  readonly changes: number
  readonly seconds: number
  /** Events that the log holds at the end. */
  readonly events: number
  readonly requests: number
  readonly writes: number
  readonly conflicts: number
  /** The digests of the whole final state, even if the log was lost. */
  readonly digests: { readonly desired: string; readonly statuses: string }
  readonly problems: readonly string[]
}

export class Run {
  readonly stage: Stage
  readonly plan: Plan
  nats: NatsServer
  traffic: Traffic
  readonly replicas = new Map<string, ControllerProcess>()
  readonly proxies = new Map<string, ProxyProcess>()
  readonly problems: string[] = []
  /** Number of changes that the API server has taken. */
  done = 0
  readonly #folder: string
  readonly #ports = new Map<string, number>()
  readonly #auditFrom: number
  readonly #kubeconfigOf: (name: string) => string

  private constructor(stage: Stage, plan: Plan, nats: NatsServer, kubeconfigOf?: KubeconfigOf) {
    this.stage = stage
    this.plan = plan
    this.nats = nats
    this.#folder = mkdtempSync(join(stage.folder, 'run-'))
    this.#auditFrom = auditSize(stage.cluster.server.auditLog)
    this.#kubeconfigOf = kubeconfigOf ?? ((name) => stage.kubeconfigs.get(name) ?? '')
    this.traffic = new Traffic(stage.port, [])
  }

  static async start(stage: Stage, plan: Plan, kubeconfigOf?: KubeconfigOf): Promise<Run> {
    const run = new Run(stage, plan, await startNatsServer(), kubeconfigOf)
    for (const name of replicaNames) run.#ports.set(name, await stablePort())
    await Promise.all(replicaNames.map((name) => run.launch(name)))
    await waitFor('replicas that are in step', () => run.#areInStep(), patienceMs)
    await Promise.all(proxyAddresses.map((address) => run.startProxy(address)))
    run.traffic = new Traffic(stage.port, proxyAddresses)
    return run
  }

  /** Starts a replica, again on its address; resolves when it tells where its health is. */
  async launch(name: string): Promise<ControllerProcess> {
    const replica = await new ControllerProcess({
      kubeconfig: this.#kubeconfigOf(name),
      nats: this.nats.url,
      name,
      // Long enough for a server that was just started on a busy machine to answer within a third.
      env: { SLUICE_LEASE_DURATION: '6s' },
      args: ['--xds-address', `127.0.0.1:${this.#ports.get(name)}`],
    }).launch()
    this.replicas.set(name, replica)
    return replica
  }

  /** Kills a replica and starts it again, as a platform does. */
  async restart(name: string): Promise<void> {
    const before = this.replicas.get(name)
    await before?.dispose()
    await this.launch(name)
  }

  async startProxy(address: string): Promise<void> {
    const addresses = [...this.#ports.values()].map((port) => `127.0.0.1:${port}`)
    const name = `edge-${address.split('.').at(-1)}`
    const args = ['--xds-token-file', this.stage.tokenFile, '--bind-address', address]
    const proxy =
      this.proxies.get(address) ?? new ProxyProcess(this.#folder, { addresses, name, args })
    this.proxies.set(address, proxy)
    await proxy.start()
    await waitFor(`an answer of ${address}`, async () => {
      const host = `${steadyRoute}.example.com`
      const answer = await send(this.stage.port, { headers: { host }, address }).catch(
        () => undefined,
      )
      return answer?.status === 200
    })
  }

  /** The name of the replica that holds the lease, other than one. */
  holder(except = ''): Promise<string> {
    return waitFor('a holder of the lease', async () => {
      for (const [name, one] of this.replicas) {
        if (name === except || !one.isRunning) continue
        if ((await one.metric('sluice_lease_held').catch(() => 0)) === 1) return name
      }
      return undefined
    })
  }

  /** Resolves when so many changes were taken. */
  reached(count: number): Promise<true> {
    return waitFor(`${count} changes`, () => this.done >= count, patienceMs)
  }

  /** Applies the changes in order, each one until the API server has taken it. */
  async applyAll(): Promise<void> {
    const { cluster } = this.stage
    for (const change of this.plan.changes) {
      await waitFor(`change ${this.done}`, async () => {
        try {
          if (change.kind === 'apply') await cluster.apply(change.object)
          else await this.#delete(change.of, change.name)
          return true
        } catch {
          return undefined
        }
      })
      this.done++
    }
  }

  /** The server may have died before or after it has deleted. */
  async #delete(kind: string, name: string): Promise<void> {
    const { server } = this.stage.cluster
    const { status } = await server.request('DELETE', this.stage.cluster.path(kind, name))
    if (status >= 300 && status !== 404) throw new Error(`${status}`)
  }

  /** Resolves when every status is decided for its newest generation and all replicas are in step. */
  async atRest(): Promise<void> {
    await waitFor('statuses of every object', () => this.#areDecided(), patienceMs)
    await waitFor('equal digests of all replicas', () => this.#areInStep(), patienceMs)
    // What a replica still wanted to write it would write within its interval.
    await after(1_500)
    await waitFor('equal digests of all replicas', () => this.#areInStep(), patienceMs)
  }

  async #areDecided(): Promise<boolean> {
    for (const [kind, names] of [
      ['HTTPRoute', this.plan.routes],
      ['GatewayPolicy', this.plan.policies],
    ] as const) {
      const { body } = await this.#list(kind)
      const settled = new Set<string>()
      for (const { metadata, status } of body.items ?? []) {
        const conditions = allConditions(status)
        const isSettled = conditions.some(
          ({ type, observedGeneration }) =>
            type === 'Accepted' && observedGeneration === metadata.generation,
        )
        if (isSettled) settled.add(metadata.name)
      }
      const hasNoParent = kind === 'GatewayPolicy' ? this.#orphans() : new Set<string>()
      if (names.some((name) => !settled.has(name) && !hasNoParent.has(name))) return false
    }
    return true
  }

  /** Policies whose route is missing at the end: they have no ancestor in their status. */
  #orphans(): Set<string> {
    const routes = new Set(this.plan.routes)
    return new Set(this.plan.policies.filter((name) => !routes.has(name.slice(2))))
  }

  #list(kind: string) {
    const { cluster } = this.stage
    return cluster.server.request('GET', cluster.collection(kind))
  }

  async #areInStep(): Promise<boolean> {
    const states = await Promise.all(
      [...this.replicas.values()].map(async (one) => {
        const { text } = await one.get('metrics', '/metrics').catch(() => ({ text: '' }))
        const ready = await one.get('health', '/readyz').catch(() => ({ status: 0 }))
        const digest = /sluice_state_digest\{([^}]*)\}/.exec(text)?.[1]
        const position = /^sluice_fold_position (\d+)/m.exec(text)?.[1]
        return ready.status === 200 && digest !== undefined ? `${digest} ${position}` : undefined
      }),
    )
    return states[0] !== undefined && states.every((state) => state === states[0])
  }

  /** Ends everything and tells what came of it. */
  async finish(began: number): Promise<RunResult> {
    await this.#checkAnswers()
    const seconds = (performance.now() - began) / 1_000
    await this.#checkReplicas()
    const { events, desired } = await this.#logState()
    const statuses = await this.#statuses()
    await this.traffic.end()
    const { sent, failures } = this.traffic
    if (failures.length > 0) {
      this.problems.push(`${failures.length} requests failed, such as ${failures[0]}`)
    }
    const judged = judgeWrites(this.writes())
    this.problems.push(...judged.repeated, ...judged.flaps, ...judged.refused)
    return {
      changes: this.done,
      seconds,
      events,
      requests: sent,
      writes: judged.writes,
      conflicts: judged.conflicts,
      digests: { desired, statuses },
      problems: this.problems,
    }
  }

  /** Status writes since this run began. */
  writes(): StatusWrite[] {
    return statusWrites(this.stage.cluster.server.auditLog, this.#auditFrom)
  }

  /** Every route answers as its last version says, through every proxy, once all are connected. */
  async #checkAnswers(): Promise<void> {
    for (const address of proxyAddresses) {
      let wrong: readonly string[] = []
      await waitFor(`the last answers of ${address}`, async () => {
        wrong = await this.#wrongAnswers(address)
        return wrong.length === 0
      }).catch(() => this.problems.push(...wrong))
    }
  }

  async #wrongAnswers(address: string): Promise<string[]> {
    const wrong: string[] = []
    for (const [host, expected] of this.plan.answers) {
      const { status, headers } = await send(this.stage.port, { headers: { host }, address })
      const revision = headers['x-revision']
      const isRight =
        status === expected.status &&
        (expected.revision === undefined || revision === expected.revision)
      if (isRight) continue
      const got = `${status} ${revision ?? ''}`
      wrong.push(`${host} through ${address}: ${got}, not ${JSON.stringify(expected)}`)
    }
    return wrong
  }

  async #checkReplicas(): Promise<void> {
    for (const [name, one] of this.replicas) {
      const different = await one.metric('sluice_digest_checks_total', 'different')
      if (different > 0) this.problems.push(`replica ${name} differed at ${different} checkpoints`)
    }
  }

  /** The state that a fold of the log gives now, compared with the states of the replicas. */
  async #logState(): Promise<{ events: number; desired: string }> {
    const log = await openNatsLog({ servers: this.nats.url, create: false })
    try {
      const { fold, from } = await restoreState(log, kubernetesSource)
      for await (const recorded of log.read({ from })) fold.apply(recorded)
      const { desired, status } = fold.digests()
      const own = `desired="${desired}",status="${status}"`
      for (const [name, one] of this.replicas) {
        const { text } = await one.get('metrics', '/metrics')
        const told = /sluice_state_digest\{([^}]*)\}/.exec(text)?.[1]
        if (told !== own) this.problems.push(`replica ${name} has ${told}, the log gives ${own}`)
      }
      const contents = fold.resources().map(({ resource }) => [resource.key, lasting(resource)])
      const events = (await log.lastPosition()) - (await log.firstPosition()) + 1
      return { events, desired: digestOf(contents.sort()) }
    } finally {
      await log.close()
    }
  }

  async #statuses(): Promise<string> {
    const kinds = ['Gateway', 'HTTPRoute', 'GatewayPolicy', 'GatewayBackend']
    const all: unknown[] = []
    for (const kind of kinds) {
      const { body } = await this.#list(kind)
      for (const { metadata, status } of body.items) {
        all.push([kind, metadata.name, metadata.generation, lasting(status ?? {})])
      }
    }
    return digestOf(all)
  }

  async dispose(): Promise<void> {
    await this.traffic.end()
    for (const one of this.replicas.values()) one.signal('SIGCONT')
    await Promise.all([...this.proxies.values()].map((one) => one.dispose()))
    await Promise.all([...this.replicas.values()].map((one) => one.dispose()))
    await this.nats.remove()
  }
}

export type KubeconfigOf = (replica: string) => string

/** Fields that differ between any two runs and say nothing about the state. */
const passing = new Set(['lastTransitionTime', 'created', 'order'])

const lasting = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, member) => (passing.has(key) ? undefined : member)))

const digestOf = (value: unknown): string => hash('sha256', canonicalJson(value)).slice(0, 16)
