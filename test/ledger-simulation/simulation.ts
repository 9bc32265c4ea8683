/** One simulation: rounds of requests and faults, each followed by a calm, in which everything must agree. */

import { type BudgetConfig, limitOf } from '../../src/ground/model/budgets.ts'
import { NatsServer } from '../cluster-simulation/nats-server.ts'
import { Network } from '../cluster-simulation/network.ts'
import { StoredLog } from '../cluster-simulation/stored-log.ts'
import { inhabit } from '../virtual-time/globals.ts'
import { Random } from '../virtual-time/random.ts'
import { Machine, World } from '../virtual-time/world.ts'
import { SpendingProxy, values } from './proxy.ts'
import { LedgerReplica } from './replica.ts'
import { Truth } from './truth.ts'

export interface Outcome {
  readonly seed: number
  readonly failure: string | undefined
  /** Identifies the whole schedule. */
  readonly digest: string
  readonly trace: readonly string[]
  readonly virtualMs: number
  readonly steps: number
  readonly admitted: number
  readonly refused: number
  readonly released: number
}

/** Time after the last fault and request in which everything must have settled. */
const settleMs = 240_000
/** Time in which a request must be admitted that is a hundredth of the amount, while more is left. */
const admitMs = 30_000

export class LedgerCluster {
  readonly world: World
  readonly random: Random
  readonly network: Network
  readonly nats: NatsServer
  readonly truth: Truth
  readonly replicas: readonly LedgerReplica[]
  readonly proxies: readonly SpendingProxy[]

  constructor(world: World) {
    const { seed } = world
    this.world = world
    this.random = new Random(seed, 'cluster')
    this.network = new Network(world, new Random(seed, 'network'))
    this.nats = new NatsServer(world, new Machine('nats'))
    this.truth = new Truth(world, budgetsOf(this.random))
    const replicas = ['r0', 'r1', 'r2'].slice(0, this.random.pick([1, 2, 3, 3]))
    this.replicas = replicas.map((name) => new LedgerReplica(this, name))
    const proxies = ['p0', 'p1', 'p2', 'p3'].slice(0, this.random.pick([1, 2, 3, 4]))
    this.proxies = proxies.map(
      (name) => new SpendingProxy(this, name, new Random(seed, `proxy ${name}`)),
    )
    for (const { machine } of [...this.replicas, ...this.proxies]) {
      machine.skewMs = this.random.between(-2_000, 2_000)
      machine.rate = this.random.between(0.9995, 1.0005)
    }
  }

  replicaOf(machine: Machine): LedgerReplica | undefined {
    return this.replicas.find((one) => one.machine === machine)
  }
}

function budgetsOf(random: Random): BudgetConfig[] {
  const common = {
    generation: 1,
    unit: 'Tokens',
    overrides: { cleo: `${random.pick([50_000, 200_000])}` },
    onExceeded: 'Block',
    softLimits: [{ percent: 10 }, { percent: 60 }],
  } as const
  const month = { type: 'Calendar', unit: 'Month', timeZone: 'UTC' } as const
  const minute = { type: 'Calendar', unit: 'Minute', timeZone: 'UTC' } as const
  return [
    {
      ...common,
      id: 'month',
      name: 'sim/month',
      amount: `${random.pick([20_000, 500_000])}`,
      window: month,
    },
    { ...common, id: 'minute', name: 'sim/minute', amount: '30000', window: minute },
  ]
}

/** Runs a seed for about as many virtual minutes. */
export async function simulate(seed: number, minutes: number): Promise<Outcome> {
  const world = new World(seed)
  inhabit(world)
  const onError = (error: unknown) =>
    world.fail(`an error was not handled: ${error instanceof Error ? error.stack : String(error)}`)
  process.on('unhandledRejection', onError)
  process.on('uncaughtException', onError)
  const cluster = new LedgerCluster(world)
  let failure: string | undefined
  try {
    await run(cluster, minutes * 60_000)
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error)
  } finally {
    process.off('unhandledRejection', onError)
    process.off('uncaughtException', onError)
  }
  const { now, steps, trace } = world
  const { admitted, refused, released } = cluster.truth
  const counts = { admitted, refused, released }
  return { seed, failure, digest: world.digest, trace, virtualMs: now, steps, ...counts }
}

async function run(cluster: LedgerCluster, endMs: number): Promise<void> {
  const { world, replicas, proxies } = cluster
  const random = new Random(world.seed, 'faults')
  watchLog(cluster)
  for (const replica of replicas) replica.start()
  await world.runUntil(2_000)
  for (const proxy of proxies) proxy.start()
  do {
    for (const proxy of proxies) proxy.isBusy = true
    const end = world.now + random.between(20_000, 200_000)
    if (!random.chance(0.2)) unleash(cluster, random, end)
    await world.runUntil(end)
    heal(cluster)
    for (const proxy of proxies) proxy.isBusy = false
    world.note('calm')
    await world.runUntil(world.now + settleMs)
    checkCalm(cluster)
    await checkAdmission(cluster)
  } while (world.now < endMs)
}

/** Compares every stored event with what really happened. */
function watchLog({ nats, truth, world }: LedgerCluster): void {
  const log = new StoredLog()
  nats.onStored = (message) => {
    for (const { position, event } of log.take(message)) {
      world.note(`log ${position}: ${event.type.slice(18)} ${JSON.stringify(event.data)}`)
      truth.stored(position, event)
    }
  }
}

/** Schedules faults until a time. */
function unleash(cluster: LedgerCluster, random: Random, endMs: number): void {
  const { world } = cluster
  const next = () => {
    if (world.now >= endMs - 1_000) return
    fault(cluster, random)
    world.schedule(world.outside, random.between(500, 15_000), next)
  }
  world.schedule(world.outside, random.between(500, 10_000), next)
}

function fault(cluster: LedgerCluster, random: Random): void {
  const { world, network, replicas, proxies, nats, truth } = cluster
  const replica = random.pick(replicas)
  const proxy = random.pick(proxies)
  const later = (ms: number, work: () => void) => world.schedule(world.outside, ms, work)
  const any = random.pick([replica.machine, proxy.machine])
  switch (random.below(11)) {
    case 0:
      if (!replica.machine.isUp) return
      world.note(`${replica.machine.name} crashes`)
      replica.crash()
      later(random.between(100, 20_000), () => replica.machine.isUp || replica.start())
      return
    case 1:
      if (!proxy.machine.isUp) return
      world.note(`${proxy.machine.name} crashes`)
      proxy.crash()
      later(random.between(100, 120_000), () => proxy.machine.isUp || proxy.start())
      return
    case 2:
      world.note(`${any.name} is suspended`)
      world.suspend(any, random.between(100, 120_000))
      return
    case 3: {
      const other = random.pick([nats.machine, replica.machine])
      if (other === any) return
      world.note(`${any.name} and ${other.name} are cut off`)
      network.cut(any, other)
      later(random.between(100, 150_000), () => network.heal(any, other))
      return
    }
    case 4:
      network.slowness = random.pick([1, 5, 50])
      return
    case 5:
      network.loss = random.pick([0, 0.05, 0.3])
      return
    case 6:
      endConnections(cluster, random, any)
      return
    case 7:
      nats.isFull = !nats.isFull
      world.note(`nats is ${nats.isFull ? 'full' : 'not full any more'}`)
      return
    case 8:
      world.note('nats forgets ids')
      truth.mayRepeat = true
      nats.dedupeMs = 0
      endConnections(cluster, random, proxy.machine)
      return
    case 9:
      isolate(cluster, random)
      return
    default:
      any.skewMs += random.between(-3_600_000, 3_600_000)
      world.note(`the clock of ${any.name} is set`)
  }
}

/** Ends the connections of a machine again and again, so that reports are repeated to other replicas. */
function endConnections({ world, network }: LedgerCluster, random: Random, machine: Machine): void {
  world.note(`connections of ${machine.name} end again and again`)
  for (let count = 0; count < 10; count++) {
    const end = () => network.disconnect(machine, 'reset')
    world.schedule(world.outside, random.between(0, 10_000), end)
  }
}

/** Cuts a proxy off from all replicas, for long enough that its allowances may be released. */
function isolate({ world, network, replicas, proxies }: LedgerCluster, random: Random): void {
  const { machine } = random.pick(proxies)
  const forMs = random.between(20_000, 200_000)
  world.note(`${machine.name} is cut off from all replicas`)
  for (const replica of replicas) {
    network.cut(machine, replica.machine)
    world.schedule(world.outside, forMs, () => network.heal(machine, replica.machine))
  }
}

function heal({ world, network, replicas, proxies, nats }: LedgerCluster): void {
  const machines = [...replicas, ...proxies].map(({ machine }) => machine)
  for (const machine of [...machines, nats.machine]) {
    world.resume(machine)
    for (const other of machines) network.heal(machine, other)
  }
  network.slowness = 1
  network.loss = 0
  nats.isFull = false
  nats.dedupeMs = 120_000
  for (const one of [...replicas, ...proxies]) if (!one.machine.isUp) one.start()
}

function checkCalm({ world, truth, replicas }: LedgerCluster): void {
  truth.checkCharges()
  truth.checkWarnings()
  const digest = truth.reference.digest()
  for (const { machine, ledger } of replicas) {
    if (ledger === undefined) world.fail(`${machine.name} has not opened its ledger`)
    else if (ledger.fold.position !== truth.reference.position) {
      world.fail(`${machine.name} is at ${ledger.fold.position} of ${truth.reference.position}`)
    } else if (ledger.fold.digest() !== digest) {
      world.fail(`${machine.name} has another digest than the log`)
    }
  }
}

/** While more than a hundredth is left, a request for that much must be admitted by every proxy. */
async function checkAdmission({ world, truth, proxies }: LedgerCluster): Promise<void> {
  for (const config of truth.budgets.filter(({ window }) => window.unit === 'Month')) {
    for (const value of values) {
      const amount = limitOf(config, value) / 100n
      for (const proxy of proxies) {
        const until = world.now + admitMs
        let isAdmitted = false
        // What a crashed proxy had spent without a report counts as left for the ledger, so it may admit more.
        while (!isAdmitted && world.now < until && truth.left(config, value) > 2n * amount) {
          let answered = false
          world.schedule(proxy.machine, 0, () => {
            void proxy.request(config, value, amount).then((admitted) => {
              isAdmitted = admitted
              answered = true
            })
          })
          await world.runUntil(world.now + 500)
          if (!answered) world.note(`${proxy.machine.name} does not answer`)
        }
        if (!isAdmitted && world.now >= until) {
          const left = truth.left(config, value)
          world.note(truth.reference.snapshot())
          world.fail(
            `${proxy.machine.name} refuses ${amount} of ${config.name}/${value}: ${left} are left`,
          )
        }
      }
    }
  }
  await world.runUntil(world.now + settleMs)
  truth.checkCharges()
  truth.checkWarnings()
}
