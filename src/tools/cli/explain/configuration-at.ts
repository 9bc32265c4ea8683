/** The configuration that was in force at a position of the event log. */
import type { SluiceEvent } from '../../../../events/index.ts'
import type { Position } from '../../../control/log/index.ts'
import { type ObjectKey, type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import { createFold, type Fold } from '../../../past/replay/index.ts'
import {
  limitOf,
  logNotices,
  type OpenRecording,
  type RecordingOptions,
  withRecording,
} from '../recording/recording.ts'
import { type Output, UsageError } from '../shared/output.ts'

/** The version of an object that was in force. */
export interface Version {
  readonly generation: number
  /** Position of the event that put it in force; not set if the log no longer has it. */
  readonly event?: number
  /** Time of that event. */
  readonly since?: string
}

/** The version of each object; objects that did not exist are omitted. */
type Versions = ReadonlyMap<ObjectKey, Version>

/**
 * Folds the log up to the position, and returns the versions of some objects. The result is a problem if the
 * log does not have that position.
 * @throws UsageError if the log is unreadable, or if `--at` leaves the position out
 */
export async function configurationAt(
  options: RecordingOptions,
  position: number,
  refs: readonly ObjectRef[],
  report: Output['report'],
): Promise<{ readonly versions: Versions } | { readonly problem: string }> {
  if (position === 0) return { problem: 'the record has no position in the event log' }
  const read = async (recording: OpenRecording) => {
    const { events, extent, derivation, gaps } = recording
    const fold = createFold(derivation, extent.base)
    const times = new Map<number, string>()
    let last = extent.base?.position ?? 0
    for await (const { position: at, event } of events) {
      last = at
      fold.apply({ position: at, event })
      fold.dropChange()
      if (at === position || isVersion(event)) times.set(at, event.time)
    }
    if (last < position) return { problem: missingText(position, last, extent.first) }
    const timeOf = async (at: number) => times.get(at) ?? (await timeInLog(recording, at))
    checkLimit(options.at, position, await timeOf(position))
    for (const notice of logNotices({ extent, gaps })) report(notice)
    return { versions: await versionsOf(fold, refs, timeOf) }
  }
  return withRecording({ ...options, at: `${position}` }, read, 'nearest')
}

const isVersion = ({ type }: SluiceEvent) => type === 'dev.sluice.resource.applied.v1'

async function versionsOf(
  fold: Fold,
  refs: readonly ObjectRef[],
  timeOf: (position: number) => Promise<string | undefined>,
): Promise<Versions> {
  const versions = new Map<ObjectKey, Version>()
  for (const key of refs.map(objectKey)) {
    const state = fold.graph.object(key)
    if (state?.object === undefined) continue
    const { generation, generationSequence: event } = state
    const since = await timeOf(event)
    versions.set(key, { generation, ...(since !== undefined && { event, since }) })
  }
  return versions
}

/** Time of an event before the stored state; undefined if the log no longer has the event. */
async function timeInLog(
  { source, extent }: OpenRecording,
  position: number,
): Promise<string | undefined> {
  if (source === undefined || position < extent.first) return undefined
  const at = position as Position
  for await (const { event } of source.log.read({ from: at, to: at })) return event.time
  return undefined
}

/** @throws UsageError */
function checkLimit(at: string | undefined, position: number, time: string | undefined): void {
  const { position: last, timeMs = Number.POSITIVE_INFINITY } = limitOf(at)
  if (last >= position && (time === undefined || timeMs >= Date.parse(time))) return
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
