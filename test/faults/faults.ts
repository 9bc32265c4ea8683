/** What is done to a control plane in the midst of its changes, one row each. */
import { setTimeout as after } from 'node:timers/promises'
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import type { SluiceEvent } from '../../events/index.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { startUnsteadyProxy, type UnsteadyProxy } from '../support/unsteady-proxy.ts'
import { waitFor } from '../support/wait-for.ts'
import type { KubeconfigOf, Run, Stage } from './scene.ts'

export interface Fault {
  readonly name: string
  readonly about: string
  /** Kubeconfigs that replace those of the server itself. */
  prepare?(stage: Stage): Promise<Prepared>
  /** Called once the changes have begun; the fault must be repaired when it resolves. */
  strike(run: Run, prepared: Prepared | undefined): Promise<void>
}

interface Prepared {
  readonly kubeconfigOf: KubeconfigOf
  readonly proxies: readonly UnsteadyProxy[]
  close(): void
}

const stream = 'SLUICE_EVENTS'

/** Changes after which the first blow falls. */
const early = (run: Run) => Math.round(run.plan.changes.length * 0.3)
const late = (run: Run) => Math.round(run.plan.changes.length * 0.6)

async function withManager(run: Run, work: (manager: JetStreamManager) => Promise<unknown>) {
  const connection = await connect({ servers: run.nats.url })
  try {
    await work(await jetstreamManager(connection))
  } finally {
    await connection.close()
  }
}

/** An operator changes the stream by hand, as with the command-line tool of NATS. */
const byHand =
  (work: (manager: JetStreamManager, last: number) => Promise<unknown>) => async (run: Run) => {
    await run.reached(early(run))
    await withManager(run, async (manager) => {
      const { state } = await manager.streams.info(stream)
      await work(manager, state.last_seq)
    })
    // A replica that starts now reads only the events that are left.
    const holder = await run.holder()
    const [other = ''] = [...run.replicas.keys()].filter((name) => name !== holder)
    await run.restart(other)
    await run.reached(late(run))
    await run.restart(holder)
  }

async function anyFollower(run: Run): Promise<string> {
  const holder = await run.holder()
  return [...run.replicas.keys()].find((name) => name !== holder) ?? ''
}

/** Has a stale holder got anything through, after another one had taken over? */
function checkStale(run: Run, stale: string, since: number): void {
  const mine = run.writes().filter(({ by, at }) => by === `replica-${stale}` && at > since)
  for (const { object, code } of mine.filter(({ code }) => code < 300)) {
    run.problems.push(`${object}: the stale holder ${stale} has written it (${code})`)
  }
}

async function eventsOf(run: Run): Promise<SluiceEvent[]> {
  const log = await openNatsLog({ servers: run.nats.url, create: false })
  try {
    return (await Array.fromAsync(log.read())).map(({ event }) => event)
  } finally {
    await log.close()
  }
}

export const faults: readonly Fault[] = [
  {
    name: 'kill-holder',
    about: 'kill -9 of the replica that holds the lease, twice',
    async strike(run) {
      for (const at of [early, late]) {
        await run.reached(at(run))
        await run.restart(await run.holder())
      }
    },
  },
  {
    name: 'kill-replica',
    about: 'kill -9 of a replica that does not hold the lease, twice',
    async strike(run) {
      for (const at of [early, late]) {
        await run.reached(at(run))
        await run.restart(await anyFollower(run))
      }
    },
  },
  {
    name: 'kill-all-replicas',
    about: 'kill -9 of all three replicas at once',
    async strike(run) {
      await run.reached(early(run))
      await Promise.all([...run.replicas.keys()].map((name) => run.restart(name)))
    },
  },
  {
    name: 'kill-nats',
    about: 'kill -9 of nats-server, twice, the second time for four seconds',
    async strike(run) {
      await run.reached(early(run))
      await run.nats.kill()
      await run.nats.restart()
      await run.reached(late(run))
      await run.nats.kill()
      await after(4_000)
      await run.nats.restart()
    },
  },
  {
    name: 'kill-api-server',
    about: 'kill -9 of the API server, twice',
    async strike(run) {
      const { server } = run.stage.cluster
      for (const at of [early, late]) {
        await run.reached(at(run))
        await server.kill()
        await server.restart()
      }
    },
  },
  {
    name: 'kill-proxy',
    about: 'kill -9 of one proxy of three, then of another one',
    async strike(run) {
      const [first = '', second = ''] = run.proxies.keys()
      for (const [at, address] of [
        [early, first],
        [late, second],
      ] as const) {
        await run.reached(at(run))
        await run.traffic.pause(address)
        await run.proxies.get(address)?.kill()
        await run.startProxy(address)
        run.traffic.resume(address)
      }
    },
  },
  {
    name: 'stop-holder',
    about: 'SIGSTOP of the holder for longer than its lease, three holders in turn',
    async strike(run) {
      for (const share of [0.25, 0.45, 0.65]) {
        await run.reached(Math.round(run.plan.changes.length * share))
        const stale = await run.holder()
        const process = run.replicas.get(stale)
        process?.signal('SIGSTOP')
        await run.holder(stale)
        const since = Date.now()
        process?.signal('SIGCONT')
        await process?.said(/no longer holding the lease/)
        checkStale(run, stale, since)
      }
    },
  },
  {
    name: 'stale-appends',
    about: 'events of a lease that is over, appended behind those of the newer one',
    async strike(run) {
      await run.reached(early(run))
      await run.restart(await run.holder())
      await waitFor('a second term', async () => {
        const taken = (await eventsOf(run)).filter(
          ({ type }) => type === 'dev.sluice.lease.acquired.v1',
        )
        return taken.length > 1
      })
      const all = await eventsOf(run)
      const terms = all.filter(({ type }) => type === 'dev.sluice.lease.acquired.v1')
      const over = terms[0]?.epoch ?? 0
      const old = all.filter(
        ({ epoch, type }) => epoch === over && type.includes('resource.applied'),
      )
      const log = await openNatsLog({ servers: run.nats.url, create: false })
      const forged = old.slice(-50).map((event, n) => ({ ...event, id: `stale-${n}` }))
      await log.append(forged)
      await log.close()
    },
  },
  {
    name: 'watch-events',
    about: 'watch events twice, late and in the wrong order, all along; then lost, and 410',
    async prepare(stage) {
      const { server } = stage.cluster
      const proxies: UnsteadyProxy[] = []
      const paths = new Map<string, string>()
      for (const name of ['a', 'b', 'c']) {
        const kubeconfig = `${server.kubeconfig}.${name}`
        const plural = ['/httproutes', '/gatewaypolicies', '/gateways']
        const proxy = await startUnsteadyProxy({ ...server, kubeconfig }, plural)
        proxies.push(proxy)
        paths.set(name, proxy.kubeconfig)
      }
      return {
        proxies,
        kubeconfigOf: (name) => paths.get(name) ?? '',
        close: () => {
          for (const proxy of proxies) proxy.close()
        },
      }
    },
    async strike(run, prepared) {
      const proxies = prepared?.proxies ?? []
      await run.reached(early(run))
      for (const proxy of proxies) proxy.loseEvents()
      await run.reached(late(run))
      for (const proxy of proxies) proxy.expireWatches()
      await waitFor('mangled events', () => proxies.some((proxy) => proxy.mangled() > 100))
    },
  },
  {
    name: 'truncate-stream',
    about: 'all but the last 100 messages of the stream purged by hand; then replicas are killed',
    strike: byHand((manager, last) => manager.streams.purge(stream, { seq: last - 99 })),
  },
  {
    name: 'purge-stream',
    about: 'the whole stream purged by hand; then replicas are killed',
    strike: byHand((manager) => manager.streams.purge(stream)),
  },
  {
    name: 'punch-stream',
    about: 'all events of HTTPRoutes purged from the stream by hand; then replicas are killed',
    strike: byHand((manager) =>
      manager.streams.purge(stream, { filter: 'sluice.local.HTTPRoute.>' }),
    ),
  },
  {
    name: 'purge-and-kill-all',
    about: 'the whole stream purged by hand, and all replicas killed before they can notice',
    async strike(run) {
      await run.reached(early(run))
      await withManager(run, (manager) => manager.streams.purge(stream))
      await Promise.all([...run.replicas.keys()].map((name) => run.restart(name)))
    },
  },
  {
    name: 'delete-stream',
    about: 'the stream deleted by hand; then replicas are killed',
    strike: byHand((manager) => manager.streams.delete(stream)),
  },
  {
    name: 'newer-event',
    about: 'an event of an unknown newer version; then the stream is deleted, as after a downgrade',
    async strike(run) {
      await run.reached(early(run))
      const log = await openNatsLog({ servers: run.nats.url, create: false })
      await log.append([
        {
          specversion: '1.0',
          id: 'future-1',
          source: '/sluice/future',
          type: 'dev.sluice.future.seen.v9',
          subject: 'sluice.local.Future._.one',
          time: new Date().toISOString(),
          datacontenttype: 'application/json',
          dataschema: 'https://sluice.dev/docs/events#future',
          epoch: 0,
          data: {},
        },
      ])
      await log.close()
      const all = [...run.replicas.values()]
      await Promise.all(all.map((one) => one.said(/Serving the last configuration/)))
      await run.reached(late(run))
      await withManager(run, (manager) => manager.streams.delete(stream))
    },
  },
]
