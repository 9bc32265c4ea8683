/** The faults that are injected while users work. */

import type { Random } from '../virtual-time/random.ts'
import type { Machine } from '../virtual-time/world.ts'
import type { Cluster } from './cluster.ts'

type Fault = (cluster: Cluster, random: Random) => void

/** Runs a step later, whatever machines do in the meantime. */
function later({ world }: Cluster, delayMs: number, work: () => void): void {
  world.schedule(world.outside, delayMs, work)
}

function restart(cluster: Cluster, machine: Machine, downMs: number): void {
  machine.isUp = false
  cluster.network.disconnect(machine, 'connection reset')
  later(cluster, downMs, () => {
    machine.isUp = true
  })
}

function cut(cluster: Cluster, random: Random, a: Machine, b: Machine): void {
  cluster.network.cut(a, b)
  later(cluster, random.between(500, 60_000), () => cluster.network.heal(a, b))
}

/** Faults by name, with their weights. */
const faults: Readonly<Record<string, readonly [weight: number, fault: Fault]>> = {
  'crash a replica': [
    3,
    (cluster, random) => {
      const replica = random.pick(cluster.replicas)
      if (!replica.machine.isUp) return
      replica.crash()
      later(cluster, random.between(50, 30_000), () => {
        if (!replica.machine.isUp) replica.start()
      })
    },
  ],
  'crash the leader with the next decision about a change': [
    3,
    (cluster, random) => {
      cluster.checks.atDecision = () =>
        later(cluster, random.between(0, 200), () => {
          const { leader } = cluster
          if (leader?.machine.isUp !== true) return
          leader.crash()
          later(cluster, random.between(50, 30_000), () => {
            if (!leader.machine.isUp) leader.start()
          })
        })
    },
  ],
  'stop a replica': [
    2,
    (cluster, random) => {
      const replica = random.pick(cluster.replicas)
      if (replica.machine.isUp) replica.restart(random.between(50, 20_000))
    },
  ],
  'suspend a replica': [
    3,
    (cluster, random) => {
      cluster.world.suspend(random.pick(cluster.replicas).machine, random.between(500, 40_000))
    },
  ],
  'cut a replica off from NATS': [
    3,
    (cluster, random) =>
      cut(cluster, random, random.pick(cluster.replicas).machine, cluster.nats.machine),
  ],
  'cut a replica off from the API server': [
    3,
    (cluster, random) =>
      cut(cluster, random, random.pick(cluster.replicas).machine, cluster.apiServer.machine),
  ],
  'cut a replica off from a proxy': [
    2,
    (cluster, random) =>
      cut(
        cluster,
        random,
        random.pick(cluster.replicas).machine,
        random.pick(cluster.proxies).machine,
      ),
  ],
  'crash a proxy': [
    2,
    (cluster, random) => {
      const proxy = random.pick(cluster.proxies)
      if (!proxy.machine.isUp) return
      proxy.crash()
      later(cluster, random.between(50, 40_000), () => {
        if (!proxy.machine.isUp) proxy.start()
      })
    },
  ],
  'suspend a proxy': [
    1,
    (cluster, random) => {
      cluster.world.suspend(random.pick(cluster.proxies).machine, random.between(500, 50_000))
    },
  ],
  'slow a proxy down': [
    1,
    (cluster, random) => {
      random.pick(cluster.proxies).slownessMs = random.between(100, 40_000)
    },
  ],
  'fill the disk of a proxy': [
    1,
    (cluster, random) => {
      random.pick(cluster.proxies).isDiskFull = true
    },
  ],
  'take the ports of a proxy': [
    1,
    (cluster, random) => {
      const proxy = random.pick(cluster.proxies)
      proxy.rejectsListeners = true
      later(cluster, random.between(1_000, 40_000), () => proxy.acceptListeners())
    },
  ],
  'restart NATS': [
    2,
    (cluster, random) => restart(cluster, cluster.nats.machine, random.between(50, 15_000)),
  ],
  'fill the disk of NATS': [
    1,
    (cluster, random) => {
      cluster.nats.isFull = true
      later(cluster, random.between(500, 20_000), () => {
        cluster.nats.isFull = false
      })
    },
  ],
  'restart the API server': [
    2,
    (cluster, random) => {
      restart(cluster, cluster.apiServer.machine, random.between(50, 20_000))
      cluster.apiServer.endWatches(false)
      if (random.chance(0.7)) cluster.apiServer.compact()
    },
  ],
  'expire all watches': [
    2,
    ({ apiServer }, random) => {
      apiServer.compact()
      apiServer.endWatches(random.chance(0.7))
    },
  ],
  'overload the API server': [
    1,
    (cluster, random) => {
      cluster.apiServer.flakiness = random.between(0.1, 0.7)
      later(cluster, random.between(1_000, 20_000), () => {
        cluster.apiServer.flakiness = 0
      })
    },
  ],
  'lose requests and answers': [
    2,
    (cluster, random) => {
      cluster.network.loss = random.between(0.05, 0.4)
      later(cluster, random.between(1_000, 20_000), () => {
        cluster.network.loss = 0
      })
    },
  ],
  'slow the network down': [
    2,
    (cluster, random) => {
      cluster.network.slowness = random.between(5, 300)
      later(cluster, random.between(1_000, 20_000), () => {
        cluster.network.slowness = 1
      })
    },
  ],
  'set a clock': [
    1,
    (cluster, random) => {
      random.pick(cluster.replicas).machine.skewMs = random.between(-2_000, 2_000)
    },
  ],
}

const names = Object.keys(faults)
const total = Object.values(faults).reduce((sum, [weight]) => sum + weight, 0)

/** Injects faults, and lets users work, until a time. */
export function unleash(cluster: Cluster, random: Random, endMs: number): void {
  const { world } = cluster
  const pace = random.pick([4_000, 10_000, 25_000])
  const injectNext = () => {
    if (world.now >= endMs) return
    let place = random.between(0, total)
    const name = names.find((one) => {
      place -= faults[one]?.[0] ?? 0
      return place < 0
    })
    if (name !== undefined) {
      world.note(`fault: ${name}`)
      faults[name]?.[1](cluster, random)
    }
    later(cluster, random.between(0, 2 * pace), injectNext)
  }
  const workNext = () => {
    if (world.now >= endMs) return
    for (let acts = random.pick([1, 1, 1, 2, 4]); acts > 0; acts--) cluster.users.act()
    later(cluster, random.between(200, 16_000), workNext)
  }
  const decideNext = () => {
    if (world.now >= endMs) return
    cluster.operators.act()
    later(cluster, random.between(500, 20_000), decideNext)
  }
  injectNext()
  workNext()
  decideNext()
}
