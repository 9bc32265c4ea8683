/** The configuration that was in force at a position of the event log. */
import { type ObjectKey, type ObjectRef, objectKey } from '../model/names.ts'
import { createFold } from '../replay/index.ts'
import { type Output, UsageError } from './output.ts'
import { limitOf, logNotices, type RecordingOptions, withRecording } from './recording.ts'

/** The version of an object that was in force. */
export interface Version {
  readonly generation: number
  /** Position of the event that put it in force; not set if the log no longer has it. */
  readonly event?: number
  /** Time of that event. */
  readonly since?: string
}

interface ObjectVersions {
  /** The version of an object; undefined if it did not exist. */
  versionOf(ref: ObjectRef): Version | undefined
}

/**
 * Folds the log up to the position. The result is a problem if the log does not have that position.
 * @throws UsageError if the log is unreadable, or if `--at` leaves the position out
 */
export async function configurationAt(
  options: RecordingOptions,
  position: number,
  report: Output['report'],
): Promise<ObjectVersions | { readonly problem: string }> {
  if (position === 0) return { problem: 'the record has no position in the event log' }
  const upTo = { ...options, at: `${position}` }
  return withRecording(upTo, async ({ events, extent, derivation, gaps }) => {
    const fold = createFold(derivation, extent.base)
    const applied = new Map<ObjectKey, Omit<Version, 'generation'>>()
    let last = extent.base?.position ?? 0
    for await (const { position: at, event } of events) {
      if (at === position) checkLimit(options.at, position, event.time)
      last = at
      fold.apply({ position: at, event })
      // Changes are not used here; without this call they would accumulate.
      fold.takeChange()
      if (event.type !== 'dev.sluice.resource.applied.v1') continue
      applied.set(objectKey(event.data), { event: at, since: event.time })
    }
    if (last < position) return { problem: missingText(position, last, extent.first) }
    for (const notice of logNotices({ extent, gaps })) report(notice)
    const versionOf = (ref: ObjectRef) => {
      const key = objectKey(ref)
      const state = fold.graph.object(key)
      return state?.object === undefined
        ? undefined
        : { generation: state.generation, ...applied.get(key) }
    }
    return { versionOf }
  })
}

/** @throws UsageError */
function checkLimit(at: string | undefined, position: number, time: string): void {
  const { position: last, timeMs = Number.POSITIVE_INFINITY } = limitOf(at)
  if (last >= position && timeMs >= Date.parse(time)) return
  throw new UsageError(
    `--at ${at} is before position ${position} (${time}), the configuration that decided the request; omit --at`,
  )
}

function missingText(position: number, last: number, first: number): string {
  if (first > position) {
    return `the log no longer has position ${position}: it begins at position ${first}`
  }
  return `the log does not have position ${position}, and ends or has a gap after position ${last}; is it the log of this gateway?`
}
