/** Proxies of replicas that are gone: they cannot say goodbye, so whoever may write says it for them. */
import { createEvent, proxyDisconnected, type SluiceEvent } from '../../events/index.ts'
import type { Fold } from '../actors/fold.ts'
import { systemClock } from '../base/clock.ts'
import { Presence, type PresenceOptions } from '../lease/index.ts'
import { subjectOf } from '../log/index.ts'
import type { DeliveryRecorder } from '../xds/delivery-recorder.ts'

export interface WatchReplicasOptions extends Pick<PresenceOptions, 'identity' | 'durationMs'> {
  /** Of the shared log; undefined where the log is this replica's own, and nobody need be watched. */
  readonly servers: string | undefined
  readonly fold: Fold
  readonly cluster: string
  /** Of the lease under which this replica may write now. */
  readonly epoch: () => number | undefined
  readonly keeper: { post(stage: 'delivery', events: readonly SluiceEvent[]): void }
  readonly onNotice: (text: string) => void
}

/** Gives signs of life, and records what goes with replicas that give none. */
export function watchReplicas(options: WatchReplicasOptions): Presence | undefined {
  const { servers, fold, cluster, epoch, keeper, onNotice } = options
  if (servers === undefined) return undefined
  return new Presence({
    ...options,
    servers,
    wanted: () => (epoch() === undefined ? [] : servingReplicas(fold)),
    onGone: (replica) => {
      const current = epoch()
      if (current === undefined) return
      onNotice(`replica ${replica} gives no sign of life: its proxies are recorded as gone`)
      keeper.post('delivery', lostProxies(fold, replica, cluster, current))
    },
  })
}

/** Replicas that serve proxies, as the log knows them. */
function servingReplicas(fold: Fold): ReadonlySet<string> {
  return new Set(fold.proxies().flatMap(({ replica }) => replica ?? []))
}

/** That the proxies which a replica had at last are gone; one that has moved is on another stream. */
function lostProxies(
  fold: Fold,
  replica: string,
  cluster: string,
  epoch: number,
): readonly SluiceEvent[] {
  const context = { source: '/sluice/presence', time: new Date(systemClock.now()).toISOString() }
  return fold
    .proxies()
    .filter((one) => one.replica === replica)
    .map(({ proxy, gateway, stream }) =>
      createEvent(
        proxyDisconnected,
        { ...context, epoch },
        {
          id: `${epoch}:presence:${replica}:${stream ?? proxy}:${fold.position}`,
          subject: subjectOf({ cluster, kind: 'Proxy', namespace: '', name: proxy }),
          data: {
            proxy,
            ...(gateway !== undefined && { gateway }),
            ...(stream !== undefined && { stream }),
            replica,
            reason: `its replica ${replica} is gone`,
          },
        },
      ),
    )
}

/** Answers where another replica has recorded that a proxy which is here is gone. */
export function contradictLoss(event: SluiceEvent, recorder: DeliveryRecorder): void {
  if (event.type !== proxyDisconnected.type) return
  recorder.contradict(event.data.proxy, event.data.stream)
}
