/**
 * Performs what the fold asks for (timers, key sets, judgements and rollouts of changes) on the replica that may write
 * the log, and logs certificates that expire.
 */
import type { Fold } from '../actors/fold.ts'
import { KeySetFetcher } from '../effects/key-set-fetcher.ts'
import type { SecretStore } from '../effects/secret-store.ts'
import { Timers } from '../effects/timers.ts'
import type { AppendQueue } from './append-queue.ts'
import { CertificateWatch } from './certificate-watch.ts'
import { ChangeJudge } from './change-judge.ts'
import type { ControlPlaneOptions, ControlPlaneParts } from './parts.ts'
import { RolloutLeader } from './rollout/rollout-leader.ts'

interface EffectsOptions
  extends Pick<ControlPlaneOptions, 'clusterDomain' | 'timing' | 'judging' | 'notify'> {
  readonly fold: Fold
  readonly secrets: SecretStore
  readonly writer: Pick<AppendQueue, 'append'>
  readonly parts: Pick<ControlPlaneParts, 'sinks' | 'targets'>
  readonly differs: (key: string) => boolean
  /** The epoch under which this replica may write the log now; undefined if it may not. */
  readonly epoch: () => number | undefined
  readonly onNotice: (text: string) => void
  readonly onRecovered: (text: string) => void
}

export class Effects {
  readonly #options: EffectsOptions
  readonly #timers: Timers
  readonly #keySets: KeySetFetcher
  readonly #certificates: CertificateWatch
  readonly #judge: ChangeJudge
  readonly #rollouts: RolloutLeader

  constructor(options: EffectsOptions) {
    const { fold, secrets, clusterDomain, timing, writer, epoch, onNotice, onRecovered } = options
    this.#options = options
    this.#timers = new Timers({
      ...timing,
      epoch,
      append: (events) => writer.append('effect', events),
    })
    this.#judge = new ChangeJudge({
      ...options.judging,
      fold,
      epoch,
      append: (events) => writer.append('decision', events),
      notify: options.notify,
    })
    this.#rollouts = new RolloutLeader({
      fold,
      targets: options.parts.targets ?? { of: () => [], names: () => [] },
      differs: options.differs,
      epoch,
      append: (events) => writer.append('decision', events),
      notify: options.notify,
    })
    this.#certificates = new CertificateWatch({
      objects: () => fold.graph.objects(),
      onNotice,
      onChecked: (all, fresh) => options.parts.sinks?.certificates(all, fresh),
    })
    this.#keySets = new KeySetFetcher({
      epoch: () => epoch() ?? 0,
      resources: () => fold.resources().map(({ resource }) => resource),
      secret: (digest) => secrets.value(digest),
      clusterDomain,
      known: (uri) => fold.keySetDigest(uri),
      append: async (event) => {
        // If this replica may no longer write, the event would be ignored.
        if (epoch() !== undefined) await writer.append('effect', [event])
      },
      onNotice,
      onRecovered,
    })
  }

  /** Sets the timers and key sets that the fold asks for now, checks certificates, judges changes that wait, and delivers them. */
  update(): void {
    const { fold, epoch } = this.#options
    this.#timers.want(fold.timers())
    this.#certificates.update()
    this.#judge.update()
    this.#rollouts.update()
    this.#keySets.update(epoch() === undefined ? [] : fold.graph.keySets.all())
  }

  /** Resolves when no key set is being fetched. */
  settled(): Promise<void> {
    return this.#keySets.settled()
  }

  async close(): Promise<void> {
    this.#timers.close()
    this.#certificates.close()
    this.#judge.close()
    this.#rollouts.close()
    await this.#keySets.close()
  }
}
