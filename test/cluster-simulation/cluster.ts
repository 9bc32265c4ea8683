/** All machines of a simulation, and what connects them. */

import { Random } from '../virtual-time/random.ts'
import { Machine, type World } from '../virtual-time/world.ts'
import { ApiServer } from './api-server.ts'
import { Checks } from './checks.ts'
import { NatsServer } from './nats-server.ts'
import { Network } from './network.ts'
import { Operators } from './operators.ts'
import { SimulatedProxy } from './proxy.ts'
import { Replica } from './replica.ts'
import { Traffic } from './traffic.ts'
import { Users } from './users.ts'
import { XdsNetwork } from './xds-network.ts'

export class Cluster {
  readonly world: World
  readonly random: Random
  readonly network: Network
  readonly apiServer: ApiServer
  readonly nats: NatsServer
  readonly xds: XdsNetwork
  readonly users: Users
  readonly operators: Operators
  readonly traffic: Traffic
  readonly checks: Checks
  readonly replicas: readonly Replica[]
  readonly proxies: readonly SimulatedProxy[]
  readonly options: {
    readonly logRetention: number
    readonly every: { readonly snapshot: number; readonly digests: number }
  }

  constructor(world: World) {
    const { seed } = world
    this.world = world
    this.random = new Random(seed, 'cluster')
    this.network = new Network(world, new Random(seed, 'network'))
    this.apiServer = new ApiServer(world, new Machine('api'), new Random(seed, 'api'))
    this.nats = new NatsServer(world, new Machine('nats'))
    this.xds = new XdsNetwork(this.network)
    this.users = new Users(world, this.apiServer, new Random(seed, 'users'))
    this.operators = new Operators(this, new Random(seed, 'operators'))
    this.options = {
      logRetention: this.random.pick([0, 1, 100]),
      every: { snapshot: this.random.pick([50, 150, 10_000]), digests: this.random.pick([16, 64]) },
    }
    this.traffic = new Traffic(new Random(seed, 'traffic').pick([0, 500, 3_000]))
    this.checks = new Checks(this)
    this.nats.onStored = (message) => this.checks.stored(message)
    this.apiServer.onWrite = (write) => this.checks.written(write)
    const names = ['r0', 'r1', 'r2'].slice(0, this.random.pick([1, 2, 3, 3, 3]))
    this.replicas = names.map((name) => new Replica(this, name))
    this.proxies = ['a', 'a', 'b'].map(
      (gateway, index) => new SimulatedProxy(this, `p${index}`, gateway),
    )
    for (const { machine } of this.replicas) {
      machine.skewMs = this.random.between(-1_000, 1_000)
      machine.rate = this.random.between(0.9995, 1.0005)
    }
  }

  get replicaNames(): readonly string[] {
    return this.replicas.map(({ machine }) => machine.name)
  }

  /** The replica that holds the lease. */
  get leader(): Replica | undefined {
    const lease = this.apiServer.get(
      'coordination.k8s.io/leases',
      'sluice-system',
      'sluice-controller',
    )
    const { holderIdentity = '' } = (lease?.spec ?? {}) as { holderIdentity?: string }
    return this.replicas.find(({ machine }) => holderIdentity.startsWith(`${machine.name}_`))
  }

  /** Every machine that can be cut off from others. */
  get machines(): readonly Machine[] {
    const servers = [this.apiServer.machine, this.nats.machine]
    return [...servers, ...[...this.replicas, ...this.proxies].map(({ machine }) => machine)]
  }

  start(): void {
    this.users.begin()
    for (const replica of this.replicas) replica.start()
    for (const proxy of this.proxies) proxy.start()
  }

  /** Ends every fault. */
  heal(): void {
    const { network, apiServer, nats, machines } = this
    network.slowness = 1
    network.loss = 0
    apiServer.flakiness = 0
    nats.isFull = false
    for (const machine of [apiServer.machine, nats.machine]) machine.isUp = true
    for (const one of machines) {
      this.world.resume(one)
      for (const other of machines) network.heal(one, other)
    }
    for (const one of [...this.replicas, ...this.proxies]) if (!one.machine.isUp) one.start()
    for (const proxy of this.proxies) {
      proxy.isDiskFull = false
      proxy.slownessMs = 50
      proxy.acceptListeners()
    }
  }
}
