/** What writes statuses into the cluster: what the fold has decided, over what is live there. */
import type { Fold } from '../../actors/fold.ts'
import { parseObjectKey } from '../../model/names.ts'
import { StatusWriter } from '../../status/writer.ts'
import type { KubernetesSource } from '../../watch/kubernetes/source.ts'
import type { Leadership } from '../leadership.ts'
import type { SessionOptions } from './session-options.ts'

export function createStatusWriter(
  { client, metrics, say }: SessionOptions,
  fold: Fold,
  source: KubernetesSource,
  leadership: () => Leadership,
): StatusWriter {
  return new StatusWriter({
    client,
    wanted: (key) => fold.decidedOf(parseObjectKey(key)),
    live: (key) => source.live(key),
    note: (key, object) => source.noteWrite(key, object),
    isLeading: () => leadership().writingEpoch() !== undefined,
    onOutcome: (kind, outcome, message) => {
      metrics.add('status_writes_total', 1, kind, outcome)
      if (message !== undefined) say('warn', message)
      else say('debug', `status of a ${kind}: ${outcome}`)
    },
  })
}
