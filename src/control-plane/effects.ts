/** What the fold asks the outside world for, performed by the one replica that may write the log. */
import { randomUUID } from 'node:crypto'
import type { Fold } from '../actors/fold.ts'
import { systemClock } from '../base/clock.ts'
import { KeySetFetcher } from '../effects/key-set-fetcher.ts'
import type { SecretStore } from '../effects/secret-store.ts'
import { Timers } from '../effects/timers.ts'
import { clusterName } from '../log/index.ts'
import type { AppendQueue } from './append-queue.ts'

interface EffectsOptions {
  readonly fold: Fold
  readonly secrets: SecretStore
  /** Last part of the names of Services. */
  readonly clusterDomain: string
  readonly writer: Pick<AppendQueue, 'append'>
  /** The epoch under which the log may be written now. */
  readonly epoch: () => number | undefined
  readonly onNotice: (text: string) => void
}

export class Effects {
  readonly #options: EffectsOptions
  readonly #timers: Timers
  readonly #keySets: KeySetFetcher

  constructor(options: EffectsOptions) {
    const { fold, secrets, clusterDomain, writer, epoch, onNotice } = options
    this.#options = options
    this.#timers = new Timers({
      clock: systemClock,
      cluster: clusterName,
      epoch,
      append: (events) => writer.append('effect', events),
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
      append: async (event) => {
        // If another replica fetches by now, this event would be ignored.
        if (epoch() !== undefined) await writer.append('effect', [event])
      },
      onNotice,
    })
  }

  /** The fold may want other things than before. */
  update(): void {
    const { fold, epoch } = this.#options
    this.#timers.want(fold.timers())
    this.#keySets.update(epoch() === undefined ? [] : fold.graph.keySets.all())
  }

  /** Resolves when no key set is being fetched. */
  settled(): Promise<void> {
    return this.#keySets.settled()
  }

  async close(): Promise<void> {
    this.#timers.close()
    await this.#keySets.close()
  }
}
