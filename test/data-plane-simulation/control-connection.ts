/** The connection through which workers get their configuration. It is lost in some worlds, and comes back later. */
import type { Resource, ResourceKey, VersionedResource } from '../../src/ground/model/resources.ts'
import type { Random } from '../virtual-time/random.ts'
import type { Machine, World } from '../virtual-time/world.ts'
import type { Workers } from './worker-faults.ts'

/** Share of worlds in which the connection is lost. */
const share = 0.15

/** A time without the connection, in milliseconds of the world's clock. */
export interface ControlLoss {
  readonly from: number
  readonly to: number
  /** Whether the source sends everything again afterwards, and not only what has changed. */
  readonly sendsAll: boolean
}

export const randomControlLoss = (random: Random): ControlLoss | undefined => {
  if (!random.chance(share)) return undefined
  const from = random.between(10, 2_000)
  const to = from + random.between(50, random.pick([500, 3_000, 20_000]))
  return { from, to, sendsAll: random.chance(0.5) }
}

/** When workers get a change that is made at a time. */
export const arrivalOf = (at: number, loss: ControlLoss | undefined): number =>
  loss !== undefined && at >= loss.from && at < loss.to ? loss.to : at

/** Sends the workers what has changed since they got it. */
export class ControlConnection {
  readonly #workers: Workers
  readonly #latest = new Map<ResourceKey, VersionedResource>()
  /** Versions that the workers have. */
  readonly #sent = new Map<ResourceKey, string>()
  #isLost = false
  #version = 0

  constructor(workers: Workers) {
    this.#workers = workers
  }

  /** Stores new versions, which are sent as soon as there is a connection. */
  async publish(resources: readonly Resource[]): Promise<void> {
    const version = `${++this.#version}`
    for (const resource of resources) this.#latest.set(resource.key, { version, resource })
    if (!this.#isLost) await this.#send(false)
  }

  lose(): void {
    this.#isLost = true
  }

  async restore(sendsAll: boolean): Promise<void> {
    this.#isLost = false
    await this.#send(sendsAll)
  }

  async #send(sendsAll: boolean): Promise<void> {
    const due = [...this.#latest.values()].filter(
      ({ version, resource }) => sendsAll || this.#sent.get(resource.key) !== version,
    )
    for (const { version, resource } of due) this.#sent.set(resource.key, version)
    await this.#workers.apply(due)
  }
}

/** Schedules a loss on the machine of the source. */
export function planControlLoss(
  world: World,
  source: Machine,
  { from, to, sendsAll }: ControlLoss,
  control: ControlConnection,
): void {
  world.schedule(source, from - world.now, () => {
    world.note('the connection to the source of the configuration is lost')
    control.lose()
  })
  world.schedule(source, to - world.now, () => {
    world.note(`the source of the configuration is back, and sends ${sendsAll ? 'all' : 'changes'}`)
    void control.restore(sendsAll)
  })
}
