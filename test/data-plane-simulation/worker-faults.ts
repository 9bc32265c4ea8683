/** What happens to the process of the gateway: its worker dies and another one takes over, and its clock is set. */
import type { ResourceKey, VersionedResource } from '../../src/ground/model/resources.ts'
import type { Random } from '../virtual-time/random.ts'
import type { Machine } from '../virtual-time/world.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import type { McpTraffic } from './mcp/traffic.ts'
import type { Network } from './network.ts'

/** Share of worlds with two workers, in which the worker dies, and in which the clock is set. */
const twoShare = 0.12
const deathShare = 0.08
const clockShare = 0.1
/** Time in which both happen. */
const lastMs = 1_500

export interface WorkerFaults {
  /** Whether two workers share the ports; neither dies. */
  readonly hasTwo: boolean
  /** When the worker dies; undefined if it does not. */
  readonly deathAt: number | undefined
  /** When the wall clock is set, and by how many milliseconds. */
  readonly clocks: readonly { readonly at: number; readonly byMs: number }[]
}

export function randomWorkerFaults(random: Random): WorkerFaults {
  const deathAt = random.chance(deathShare) ? random.between(50, lastMs) : undefined
  const clocks = random.chance(clockShare)
    ? Array.from({ length: 1 + random.below(2) }, () => ({
        at: random.between(0, lastMs),
        byMs: Math.floor(random.between(-1, 1) * random.pick([2_000, 3_600_000, 86_400_000])),
      }))
    : []
  return { deathAt, clocks, hasTwo: deathAt === undefined && random.chance(twoShare) }
}

/** The workers that serve, and the configuration that a successor gets. */
export class Workers {
  #serving: readonly Gateway[]
  readonly #resources = new Map<ResourceKey, VersionedResource>()

  constructor(serving: readonly Gateway[]) {
    this.#serving = serving
  }

  get serving(): readonly Gateway[] {
    return this.#serving
  }

  async apply(resources: readonly VersionedResource[]): Promise<void> {
    for (const one of resources) this.#resources.set(one.resource.key, one)
    await Promise.all(this.#serving.map((one) => one.apply(resources)))
  }

  stop(): void {
    for (const one of this.#serving) one.stop()
  }

  /** Lets the worker die: its connections are reset, its timers never fire, and `next` gets the configuration. */
  replace(next: Gateway, machine: Machine, network: Network): void {
    machine.run++
    network.resetAll(machine)
    this.#serving = [next]
    void next.apply([...this.#resources.values()])
  }
}

interface Client {
  onDeath(why: string): void
}

const why = 'the worker has died'

/** Excuses what was under way when the worker died. */
export function excuseAll(
  exchanges: Iterable<Exchange>,
  clients: readonly Client[],
  mcp: McpTraffic,
): void {
  for (const client of clients) client.onDeath(why)
  for (const exchange of exchanges) {
    if (exchange.begunAt !== undefined) exchange.mayLackRecord = true
  }
  mcp.excuseAll(why)
}
