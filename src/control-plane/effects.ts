/** What the fold asks the outside world for, performed by the one replica that may write the log. */
import { randomUUID } from 'node:crypto'
import type { SluiceEvent } from '../../events/index.ts'
import type { Fold } from '../actors/fold.ts'
import { systemClock } from '../base/clock.ts'
import { KeySetFetcher } from '../effects/key-set-fetcher.ts'
import type { SecretStore } from '../effects/secret-store.ts'
import { Timers } from '../effects/timers.ts'
import type { RefusalEvents } from '../status/refusal-events.ts'
import type { AppendStage } from './append-queue.ts'
import { clusterName } from './controller/cluster-name.ts'
import { DefinitionsRecord } from './controller/definitions.ts'

export interface EffectsOptions {
  readonly fold: Fold
  readonly secrets: SecretStore
  /** Last part of the names of Services. */
  readonly clusterDomain: string
  readonly keeper: {
    append(stage: AppendStage, events: readonly SluiceEvent[]): Promise<unknown>
  }
  /** The epoch under which the log may be written now. */
  readonly epoch: () => number | undefined
  readonly onNotice: (text: string) => void
  /** Absent where there is no cluster. */
  readonly refusals?: RefusalEvents
}

export class Effects {
  readonly #options: EffectsOptions
  readonly #timers: Timers
  readonly #keySets: KeySetFetcher
  readonly #definitions: DefinitionsRecord

  constructor(options: EffectsOptions) {
    const { fold, secrets, clusterDomain, keeper, epoch, onNotice } = options
    this.#options = options
    this.#definitions = new DefinitionsRecord(options)
    this.#timers = new Timers({
      clock: systemClock,
      cluster: clusterName,
      epoch,
      append: (events) => keeper.append('effect', events),
    })
    this.#keySets = new KeySetFetcher({
      clock: systemClock,
      cluster: clusterName,
      run: randomUUID(),
      epoch: () => epoch() ?? 0,
      resources: () => fold.resources().map(({ resource }) => resource),
      secret: (digest) => secrets.value(digest),
      clusterDomain,
      known: (uri) => fold.keySetDigest(uri),
      append: async (event: SluiceEvent) => {
        // Another replica fetches; what this one has begun would count for nothing.
        if (epoch() !== undefined) await keeper.append('effect', [event])
      },
      onNotice,
    })
  }

  /** The fold may want other things than before. */
  update(): void {
    const { fold, epoch } = this.#options
    this.#definitions.update()
    this.#timers.want(fold.timers())
    this.#keySets.update(epoch() === undefined ? [] : fold.graph.keySets.all())
  }

  /** Something new is in the log. */
  folded(event: SluiceEvent): void {
    if (event.type === 'dev.sluice.config.rejected.v1') this.#options.refusals?.add(event.data)
  }

  /** Versions of the Gateway API that the cluster defines now. */
  noteDefinitions(versions: readonly string[]): void {
    this.#definitions.note(versions)
  }

  /** Resolves when no key set is being fetched. */
  settled(): Promise<void> {
    return this.#keySets.settled()
  }

  async close(): Promise<void> {
    this.#timers.close()
    await this.#keySets.close()
    await this.#options.refusals?.close()
  }
}
