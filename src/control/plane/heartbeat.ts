/** The replica that writes the log records the proxies of a dead replica as gone. */
import { proxyDisconnected, type SluiceEvent } from '../../../events/index.ts'
import type { Fold } from '../actors/fold.ts'
import { Heartbeat, type HeartbeatOptions } from '../lease/heartbeat.ts'
import { newEvent } from '../log/index.ts'
import type { AppendQueue } from './append-queue.ts'

interface OpenHeartbeatOptions extends Pick<HeartbeatOptions, 'identity' | 'durationMs'> {
  /** Opens the heartbeats of the replicas of a shared log. If not set, there are no other replicas. */
  readonly openEntries: HeartbeatOptions['openEntries'] | undefined
  readonly fold: Fold
  /** The epoch under which this replica may write the log now; undefined if it may not. */
  readonly epoch: () => number | undefined
  readonly writer: Pick<AppendQueue, 'enqueue'>
  readonly onNotice: (text: string) => void
}

/** Sends heartbeats, and records the proxies of replicas whose heartbeats have ceased as gone. */
export function openHeartbeat(options: OpenHeartbeatOptions): Heartbeat | undefined {
  const { openEntries, fold, epoch, writer, onNotice } = options
  if (openEntries === undefined) return undefined
  return new Heartbeat({
    ...options,
    openEntries,
    watched: () => (epoch() === undefined ? [] : servingReplicas(fold)),
    onGone: (replica) => {
      const current = epoch()
      if (current === undefined) return
      onNotice(`replica ${replica} sends no heartbeat; its proxies are recorded as gone`)
      writer.enqueue('delivery', lostProxies(fold, replica, current))
    },
  })
}

/** Replicas that serve proxies according to the log. */
function servingReplicas(fold: Fold): ReadonlySet<string> {
  return new Set(fold.proxies().flatMap(({ replica }) => replica ?? []))
}

/** Returns events that record a replica's proxies as gone from their streams; they may have reconnected. */
function lostProxies(fold: Fold, replica: string, epoch: number): readonly SluiceEvent[] {
  const writer = { source: '/sluice/presence', epoch }
  return fold
    .proxies()
    .filter((one) => one.replica === replica)
    .map(({ proxy, gateway, stream }) =>
      newEvent(
        proxyDisconnected,
        writer,
        { kind: 'Proxy', name: proxy },
        {
          id: `${epoch}:presence:${replica}:${stream ?? proxy}:${fold.position}`,
          data: { proxy, gateway, stream, replica, reason: `its replica ${replica} is gone` },
        },
      ),
    )
}
