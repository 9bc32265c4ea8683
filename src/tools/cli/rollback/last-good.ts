/** Finds the last configuration of a log without a problem. */

import { type ObjectKey, objectKey } from '../../../ground/model/names.ts'
import { checkStatus, healthOf } from '../../../past/explain/health.ts'
import type { FoldSnapshot } from '../../../past/replay/index.ts'
import type { OpenRecording } from '../recording/recording.ts'

/** A configuration that was published. */
interface Published {
  readonly version: number
  readonly digest: string
}

const isGood = (status: object): boolean =>
  checkStatus(status).bad.every(({ condition }) => healthOf(condition) !== 'problem')

/**
 * Returns the position of the last published configuration in which no condition reports a problem, and that differs
 * from the newest one; undefined if the log has none.
 */
export async function lastGood({
  events,
  extent,
}: Pick<OpenRecording, 'events' | 'extent'>): Promise<number | undefined> {
  const bad = new Set(problemsIn(extent.base))
  const good: Published[] = []
  let newest: Published | undefined
  for await (const { event } of events) {
    if (event.type === 'dev.sluice.conditions.decided.v1') {
      const key = objectKey(event.data)
      if (isGood(event.data.status)) bad.delete(key)
      else bad.add(key)
    } else if (event.type === 'dev.sluice.resource.deleted.v1') bad.delete(objectKey(event.data))
    else if (event.type === 'dev.sluice.desired.published.v1') {
      const { version, digest } = event.data
      newest = { version, digest }
      if (good.at(-1)?.digest === digest) good.pop()
      if (bad.size === 0) good.push(newest)
      // The newest of two different configurations may be the present one.
      if (good.length > 2) good.shift()
    }
  }
  return good.findLast(({ digest }) => digest !== newest?.digest)?.version
}

const problemsIn = (base: FoldSnapshot | undefined): ObjectKey[] =>
  (base?.statuses ?? []).flatMap(([key, status]) => (isGood(status) ? [] : [key]))
