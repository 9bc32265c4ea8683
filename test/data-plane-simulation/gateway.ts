/** The data plane of a worker in a world: the real engine, core, phases, policies and backends. */
import { createIoCore } from '../../src/engines/core/index.ts'
import { Engine } from '../../src/engines/http/engine.ts'
import { createDataPlane, type DataPlane } from '../../src/gateway/proxy/data-plane.ts'
import type { RateBuckets } from '../../src/gateway/proxy/rate-buckets.ts'
import type { AccessRecord } from '../../src/gateway/proxy/telemetry/types.ts'
import type { GatewayError } from '../../src/ground/errors/index.ts'
import type { VersionedResource } from '../../src/ground/model/resources.ts'
import type { World } from '../virtual-time/world.ts'
import { DecisionStore } from './decisions.ts'

interface GatewayOptions {
  /** Counts for limits, which outlive workers. */
  readonly buckets: RateBuckets
  /** Pages of the core's memory, of 64 KiB each. */
  readonly memoryPages: number
  /** Whether other workers listen on the same ports. */
  readonly sharesPorts: boolean
  /** Whether decisions are recorded. */
  readonly records: boolean
  onDone(record: AccessRecord): void
  /** A bug is never an expected outcome. */
  onBug(error: GatewayError): void
}

export class Gateway {
  readonly engine: Engine
  readonly decisions: DecisionStore | undefined
  readonly #plane: DataPlane
  readonly #ports = new Set<number>()
  #sequence = 0

  private constructor(engine: Engine, plane: DataPlane, decisions: DecisionStore | undefined) {
    this.engine = engine
    this.#plane = plane
    this.decisions = decisions
  }

  static async start(world: World, options: GatewayOptions): Promise<Gateway> {
    const core = createIoCore({ memoryPages: options.memoryPages })
    const head = core.createHead({ maxFields: 128 })
    const engine = new Engine({
      core,
      head,
      bindAddress: '10.0.0.1',
      reusePort: options.sharesPorts,
    })
    const ignore = () => {}
    const telemetry = {
      onDone(_exchange: unknown, record: AccessRecord) {
        if (record.bug !== undefined) options.onBug(record.bug)
        options.onDone(record)
      },
      onBadHead: ignore,
      onStreamDone: ignore,
      onEjected: ignore,
      onHealthChange: ignore,
      onExport: ignore,
      onLookup: ignore,
      onCallout: ignore,
    }
    const decisions = options.records ? new DecisionStore(core) : undefined
    const plane = await createDataPlane({
      buckets: options.buckets,
      core,
      head,
      engine,
      telemetry,
      ...(decisions && { recorder: (references) => decisions.recorder(references) }),
      settings: {
        destinations: { allow: [], refuse: [], loopback: true },
        random: () => world.inside.next(),
        lookup: () => Promise.reject(new Error('there are no names here')),
        sessionKey: new Uint8Array(32),
      },
    })
    engine.serve(plane)
    return new Gateway(engine, plane, decisions)
  }

  /** Applies a change and binds the ports of its listeners. */
  async apply(upserted: readonly VersionedResource[]): Promise<void> {
    const sequence = ++this.#sequence
    const { rejected, ports } = this.#plane.apply({ sequence, upserted, removed: [] })
    const [first] = rejected
    if (first !== undefined) throw new Error(`${first.key} is rejected: ${first.message}`)
    for (const port of ports) {
      this.engine.configure(port, this.#plane.portSettings(port, 'HTTP'))
      if (this.#ports.has(port)) continue
      this.#ports.add(port)
      await this.engine.listen(port)
    }
  }

  stop(): void {
    this.#plane.stop()
    this.engine.close()
  }
}
