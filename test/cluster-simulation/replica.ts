/** A replica of the controller: the sessions of production, on the models of the cluster. */
import { setTimeout as after } from 'node:timers/promises'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { ControllerHealth } from '../../src/control/plane/controller/health.ts'
import { ControllerMetrics } from '../../src/control/plane/controller/metrics.ts'
import { openSession } from '../../src/control/plane/kubernetes.ts'
import type { OpenedLog } from '../../src/control/plane/open-log.ts'
import type { LogLevel } from '../../src/control/plane/parts.ts'
import { DigestKey } from '../../src/control/watch/digest-key.ts'
import { Backoff } from '../../src/control/watch/kubernetes/backoff.ts'
import {
  type ControllerSettings,
  readControllerSettings,
} from '../../src/ground/settings/controller.ts'
import { Judge } from '../../src/past/what-if/judge.ts'
import { Random } from '../virtual-time/random.ts'
import { Machine } from '../virtual-time/world.ts'
import type { Cluster } from './cluster.ts'
import { SimulatedKubeClient } from './kube-client.ts'
import { NatsLink } from './nats-link.ts'
import { tapped } from './tapped-log.ts'

const leaseDurationMs = 15_000
/** How long Kubernetes waits for a process to stop before it kills it. */
const gracePeriodMs = 30_000

/** Texts of errors that no fault can cause. */
const bugs = /TypeError|ReferenceError|RangeError|is not a function|Cannot (read|assign|add|delete)/

function settings(retention: number): ControllerSettings {
  const read = readControllerSettings({}, { SLUICE_LOG_RETENTION: String(retention) })
  if (!read.ok) throw new Error('the settings of the simulation are invalid')
  return read.value
}

type Session = Awaited<ReturnType<typeof openSession>>

export class Replica {
  readonly machine: Machine
  readonly #cluster: Cluster
  #session: Session | undefined

  constructor(cluster: Cluster, name: string) {
    this.#cluster = cluster
    this.machine = new Machine(name)
    this.machine.isUp = false
  }

  start(): void {
    const { world } = this.#cluster
    this.machine.isUp = true
    this.machine.run++
    world.schedule(this.machine, 0, () => void this.#run())
  }

  /** Ends the process at once. */
  crash(): void {
    this.machine.isUp = false
    this.machine.run++
    this.machine.pausedUntil = 0
    this.#session = undefined
    this.#cluster.network.disconnect(this.machine, 'connection reset')
  }

  /**
   * Ends the process as a rollout does, and starts it again after a while. It gives the lease up first, but is
   * killed if that takes too long.
   */
  restart(downMs: number): void {
    const { world } = this.#cluster
    const session = this.#session
    const { run } = this.machine
    const end = () => {
      if (this.machine.run !== run) return
      this.crash()
      world.schedule(world.outside, downMs, () => {
        if (!this.machine.isUp) this.start()
      })
    }
    world.schedule(this.machine, 0, () => {
      void session?.stop().then(() => world.schedule(world.outside, 0, end))
    })
    world.schedule(world.outside, gracePeriodMs, end)
  }

  /** Runs sessions, one after the other, as `controller.ts` does. */
  async #run(): Promise<void> {
    const backoff = new Backoff(500, 10_000)
    for (;;) {
      const reason = await this.#runSession().catch((error) => error)
      this.#notify('error', `restarting the control loop: ${String(reason)}`)
      await after(backoff.next())
    }
  }

  async #runSession(): Promise<unknown> {
    const { world, apiServer, network, xds, options, traffic } = this.#cluster
    const { machine } = this
    const session = await openSession(
      {
        version: '0.0.0',
        client: new SimulatedKubeClient(machine, apiServer, network),
        settings: settings(options.logRetention),
        namespace: 'sluice-system',
        owners: {},
        replica: machine.name,
        isInCluster: false,
        health: new ControllerHealth(),
        metrics: new ControllerMetrics(),
        listen: xds.listenOn(machine),
        every: options.every,
        figures: async (...question) => traffic.figures(...question, world.wallMs(machine)),
        // There is no traffic, so that changes are judged by what they take away.
        judging: { load: async () => Judge },
        notify: (severity, text) => this.#notify(severity, text),
      },
      await this.#openLog(),
      new AbortController().signal,
    )
    try {
      await session.start()
      this.#session = session
      return await session.ended
    } finally {
      this.#session = undefined
      await session.stop()
    }
  }

  async #openLog(): Promise<OpenedLog> {
    const { nats, network, world, checks } = this.#cluster
    const { machine } = this
    const random = new Random(world.seed, `nats ${machine.name} ${machine.run} ${world.steps}`)
    const link = new NatsLink(machine, nats, network, random)
    const log = tapped(
      await openNatsLog({
        servers: 'nats',
        patienceMs: leaseDurationMs,
        connect: async () => link.asLink(),
      }),
      {
        onAppended: (events, positions) => checks.acknowledged(machine.name, events, positions),
        onRead: (recorded, before) => checks.read(machine.name, recorded, before),
      },
    )
    return {
      log,
      digestKey: new DigestKey(Buffer.alloc(32, 7)),
      path: undefined,
      notices: [],
      shared: {
        servers: 'nats',
        replica: machine.name,
        openHeartbeats: (key, lifeMs) => link.heartbeats(key, lifeMs),
      },
      openLedger: () => Promise.reject(new Error('no budgets are simulated here')),
      close: () => log.close(),
    }
  }

  #notify(severity: LogLevel, text: string): void {
    if (severity === 'debug') return
    const { world } = this.#cluster
    world.note(`${severity} ${text}`)
    if (bugs.test(text)) world.fail(`${this.machine.name} reports a bug: ${text}`)
  }
}
