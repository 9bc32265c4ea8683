/** The proxies of a replica that has died cannot say goodbye: the replica that writes records it. */
import { createEvent, proxyDisconnected, type SluiceEvent } from '../../events/index.ts'
import type { Fold } from '../actors/fold.ts'
import { systemClock } from '../base/clock.ts'
import { Heartbeat, type HeartbeatOptions } from '../lease/index.ts'
import { clusterName, subjectOf } from '../log/index.ts'
import type { DeliveryRecorder } from '../xds/delivery-recorder.ts'
import type { AppendQueue } from './append-queue.ts'

interface OpenHeartbeatOptions extends Pick<HeartbeatOptions, 'identity' | 'durationMs'> {
  /** NATS servers of the shared log. If omitted, there are no other replicas. */
  readonly servers: string | undefined
  readonly fold: Fold
  /** The epoch under which this replica may write the log now. */
  readonly epoch: () => number | undefined
  readonly writer: Pick<AppendQueue, 'enqueue'>
  readonly onNotice: (text: string) => void
}

/** Sends heartbeats, and records the proxies of replicas whose heartbeats have ceased as gone. */
export function openHeartbeat(options: OpenHeartbeatOptions): Heartbeat | undefined {
  const { servers, fold, epoch, writer, onNotice } = options
  if (servers === undefined) return undefined
  return new Heartbeat({
    ...options,
    servers,
    watched: () => (epoch() === undefined ? [] : servingReplicas(fold)),
    onGone: (replica) => {
      const current = epoch()
      if (current === undefined) return
      onNotice(`replica ${replica} gives no sign of life: its proxies are recorded as gone`)
      writer.enqueue('delivery', lostProxies(fold, replica, current))
    },
  })
}

/** Replicas that serve proxies, as the log knows them. */
function servingReplicas(fold: Fold): ReadonlySet<string> {
  return new Set(fold.proxies().flatMap(({ replica }) => replica ?? []))
}

/** Records the last proxies of a replica as gone. A proxy that has moved is on another stream. */
function lostProxies(fold: Fold, replica: string, epoch: number): readonly SluiceEvent[] {
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
          subject: subjectOf({ cluster: clusterName, kind: 'Proxy', namespace: '', name: proxy }),
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

/** Corrects another replica that has recorded a proxy as gone which is connected here. */
export function reassertConnection(event: SluiceEvent, recorder: DeliveryRecorder): void {
  if (event.type !== proxyDisconnected.type) return
  recorder.reassert(event.data.proxy, event.data.stream)
}
