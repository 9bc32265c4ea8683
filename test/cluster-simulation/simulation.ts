/** One simulation: rounds of faults and changes, each followed by a calm, in which everything must agree. */

import { inhabit } from '../virtual-time/globals.ts'
import { Random } from '../virtual-time/random.ts'
import { World } from '../virtual-time/world.ts'
import { checkCalm } from './calm.ts'
import { Cluster } from './cluster.ts'
import { unleash } from './faults.ts'

export interface Outcome {
  readonly seed: number
  readonly failure: string | undefined
  /** Identifies the whole schedule. */
  readonly digest: string
  readonly trace: readonly string[]
  readonly virtualMs: number
  readonly steps: number
  /** Number of events in the log. */
  readonly events: number
}

/** Time after the last fault in which everything must have settled. */
const settleMs = 90_000
/** Time after that in which nothing may happen any more. */
const stillMs = 30_000

/** Runs a seed for about as many virtual minutes. */
export async function simulate(seed: number, minutes: number): Promise<Outcome> {
  const world = new World(seed)
  inhabit(world)
  const onError = (error: unknown) => {
    world.fail(`an error was not handled: ${error instanceof Error ? error.stack : String(error)}`)
  }
  process.on('unhandledRejection', onError)
  process.on('uncaughtException', onError)
  const cluster = new Cluster(world)
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
  const events = cluster.checks.reference.position
  return { seed, failure, digest: world.digest, trace, virtualMs: now, steps, events }
}

async function run(cluster: Cluster, endMs: number): Promise<void> {
  const { world } = cluster
  const random = new Random(world.seed, 'faults')
  cluster.start()
  do {
    const isCalm = world.now === 0 && random.chance(0.2)
    const end = world.now + (isCalm ? 5_000 : random.between(30_000, 240_000))
    if (!isCalm) unleash(cluster, random, end)
    await world.runUntil(end)
    cluster.heal()
    cluster.users.repair()
    world.note('calm')
    cluster.operators.settle(world.now + settleMs)
    await world.runUntil(world.now + settleMs)
    await checkCalm(cluster)
    await checkStill(cluster)
  } while (world.now < endMs)
}

/** Nothing changes any more: no status, no object, no configuration. */
async function checkStill({ world, apiServer, checks }: Cluster): Promise<void> {
  const { fold } = checks.reference
  const { onWrite } = apiServer
  const changedAt = fold.changedAt
  apiServer.onWrite = (write) => {
    onWrite(write)
    if (write.collection === 'coordination.k8s.io/leases') return
    const { name } = (write.object ?? write.before)?.metadata ?? {}
    world.fail(`${write.by} writes ${write.collection} ${name}, although nothing has changed`)
  }
  await world.runUntil(world.now + stillMs)
  apiServer.onWrite = onWrite
  if (fold.changedAt !== changedAt) {
    world.fail(`position ${fold.changedAt} changes the state, although nothing has changed`)
  }
}
