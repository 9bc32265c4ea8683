/** Gauges that are read when somebody scrapes. */
import type { Fold } from '../../actors/fold.ts'
import type { StatusWriter } from '../../status/writer.ts'
import type { KubernetesSource } from '../../watch/kubernetes/source.ts'
import type { ControllerMetrics } from './metrics.ts'

export interface Gauged {
  readonly fold: Fold
  readonly source: KubernetesSource
  readonly writer: StatusWriter
  readonly isLeading: () => boolean
}

/** Returns the end of it. */
export function collectMetrics(metrics: ControllerMetrics, gauged: Gauged): () => void {
  const { fold, source, writer, isLeading } = gauged
  return metrics.collect(() => {
    metrics.set('fold_position', fold.position)
    metrics.set('queue_depth', source.depth, 'source')
    metrics.set('queue_depth', writer.depth, 'status')
    metrics.set('watched_objects', source.size)
    metrics.set('lease_held', isLeading() ? 1 : 0)
    metrics.set('lease_epoch', fold.epoch)
    metrics.clear('state_digest')
    const { desired, status } = fold.digests()
    metrics.set('state_digest', 1, desired, status)
    metrics.clear('watch_up')
    for (const { kind, state, silentMs } of source.states()) {
      metrics.set('watch_up', 1, kind, state)
      metrics.set('watch_silence_seconds', Math.round(silentMs / 100) / 10, kind)
    }
  })
}
