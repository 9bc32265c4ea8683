/** A proxy: the client of production, a disk, and a worker that applies what arrives after a while. */

import type { ConfigUpdate } from '../../src/control/wire/channel.ts'
import { decodeDelta } from '../../src/control/wire/decode.ts'
import { assembleDelta } from '../../src/control/wire/encode.ts'
import { splitDelta } from '../../src/control/wire/pieces.ts'
import type { LastGood } from '../../src/gateway/proxy/remote/last-good.ts'
import { RemoteChannel } from '../../src/gateway/proxy/remote/remote-channel.ts'
import type { ResourceKey, VersionedResource } from '../../src/ground/model/resources.ts'
import { Machine } from '../virtual-time/world.ts'
import type { Cluster } from './cluster.ts'
import { fingerprintOf } from './reference.ts'
import { failingPath } from './traffic.ts'

/** Whether it is a route to a path that fails. */
const fails = ({ resource }: VersionedResource): boolean =>
  resource.type === 'route' && resource.matches.some(({ path }) => path?.value === failingPath)

type Disk = Pick<LastGood, 'load' | 'save'>

export class SimulatedProxy {
  readonly machine: Machine
  /** Name of its Gateway in the namespace `apps`. */
  readonly gateway: string
  /** Fingerprints of all configurations that this process has had in force. */
  fingerprints = new Set<string>()
  /** Versions by key, as the worker has them. */
  versions = new Map<ResourceKey, string>()
  /** Routes in force to a path that fails. */
  readonly #failing = new Set<ResourceKey>()
  /** Whether it accepts no listener any more, as if their ports were taken. */
  rejectsListeners = false
  isDiskFull = false
  /** When the process started, by the clock of the world. */
  startedAt = 0
  /** Position of the configuration that the worker applied last. */
  position = 0
  /** How long the worker takes to apply a change set, at most. */
  slownessMs = 50
  readonly #cluster: Cluster
  #stored: { readonly inForce: Uint8Array; readonly refused: Uint8Array } | undefined
  #channel: RemoteChannel | undefined
  #rejected = new Set<ResourceKey>()
  #applied = 0

  constructor(cluster: Cluster, name: string, gateway: string) {
    this.#cluster = cluster
    this.machine = new Machine(name)
    this.gateway = gateway
    this.machine.isUp = false
  }

  start(): void {
    const { world, xds, replicaNames, random } = this.#cluster
    this.machine.isUp = true
    this.machine.run++
    this.startedAt = world.now
    this.position = 0
    this.versions = new Map()
    this.#failing.clear()
    this.fingerprints = new Set()
    this.#rejected = new Set()
    this.#applied = 0
    const first = random.below(replicaNames.length)
    const addresses = [...replicaNames.slice(first), ...replicaNames.slice(0, first)]
    world.schedule(this.machine, 0, () => {
      const channel = new RemoteChannel({
        addresses,
        node: {
          name: this.machine.name,
          gateway: { namespace: 'apps', name: this.gateway },
          addresses: [`10.0.0.${this.machine.name.charCodeAt(1)}`],
          version: '0.0.0',
        },
        connect: (address) => xds.connect(this.machine, address),
        lastGood: this.#disk(),
        onNotice: (severity, text) => {
          if (severity !== 'trace' && severity !== 'debug') world.note(`${severity} ${text}`)
        },
      })
      this.#channel = channel
      channel.start()
      channel.subscribe((update) => this.#receive(channel, update))
    })
    this.#countNext()
  }

  get failingRoutes(): ReadonlySet<ResourceKey> {
    return this.#failing
  }

  /** Counts requests each second. */
  #countNext(): void {
    const { world, traffic } = this.#cluster
    world.schedule(this.machine, 1_000 - (world.now % 1_000), () => {
      if (this.position > 0) traffic.count(this, world.wallMs(this.machine))
      this.#countNext()
    })
  }

  crash(): void {
    this.machine.isUp = false
    this.machine.run++
    this.machine.pausedUntil = 0
    this.#channel = undefined
    this.#cluster.network.disconnect(this.machine, 'connection reset')
  }

  #disk(): Disk {
    return {
      load: () => {
        const stored = this.#stored
        if (stored === undefined) return undefined
        const { inForce, refused } = stored
        return { inForce: splitDelta(inForce), refused: splitDelta(refused), saved: 'before' }
      },
      save: async (stored) => {
        if (this.isDiskFull) throw new Error('ENOSPC: no space left on device')
        const { inForce, refused } = stored
        this.#stored = {
          inForce: assembleDelta(0, inForce, []),
          refused: assembleDelta(0, refused, []),
        }
      },
    }
  }

  #receive(channel: RemoteChannel, update: ConfigUpdate): void {
    const { world, random } = this.#cluster
    // Workers apply change sets in order.
    const at = Math.max(this.#applied, world.now + random.between(0, this.slownessMs))
    this.#applied = at
    world.schedule(this.machine, at - world.now, () => this.#apply(channel, update))
  }

  #apply(channel: RemoteChannel, { sequence, position = 0, base, bytes }: ConfigUpdate): void {
    const { world, checks } = this.#cluster
    const name = this.machine.name
    for (const part of [base, bytes]) {
      if (part === undefined) continue
      for (const { key, version } of splitDelta(part)) this.versions.set(key, version)
      const { upserted, removed } = decodeDelta(part)
      for (const one of upserted) {
        if (fails(one)) this.#failing.add(one.resource.key)
        else this.#failing.delete(one.resource.key)
      }
      for (const key of removed) {
        this.versions.delete(key)
        this.#failing.delete(key)
        if (this.#rejected.delete(key)) channel.recover(name, sequence, key)
      }
    }
    for (const key of this.versions.keys()) {
      if (!key.startsWith('listener/')) continue
      if (this.rejectsListeners && !this.#rejected.has(key)) {
        this.#rejected.add(key)
        const message = 'the port is in use'
        channel.reject(name, sequence, { key, code: 'port_in_use', message })
      } else if (!this.rejectsListeners && this.#rejected.delete(key)) {
        channel.recover(name, sequence, key)
      }
    }
    const fingerprint = fingerprintOf(this.versions)
    this.fingerprints.add(fingerprint)
    world.note(`applied position ${position}: ${fingerprint}`)
    checks.applied(this, position)
    if (position > 0) this.position = position
    channel.ack(name, sequence)
  }

  /** Binds its listeners again, if it could not before. */
  acceptListeners(): void {
    this.rejectsListeners = false
    const channel = this.#channel
    if (channel === undefined || !this.machine.isUp) return
    this.#cluster.world.schedule(this.machine, 0, () => {
      for (const key of this.#rejected) channel.recover(this.machine.name, 0, key)
      this.#rejected.clear()
    })
  }
}
