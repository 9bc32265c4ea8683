/** Appends events of an operator to the log of the configuration, also while gateways write it. */
import type { SluiceEvent } from '../../../../events/index.ts'
import {
  type EventLog,
  joinEmbeddedLog,
  LogError,
  type Position,
} from '../../../control/log/index.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { type Output, UsageError } from '../shared/output.ts'
import { isDatabase } from './log-files.ts'
import { type RecordingOptions, readState } from './recording.ts'

export type LogPlace = Pick<RecordingOptions, 'logFile' | 'nats'>

/** What an operator appends, after the last event that was read. */
interface LogChange<Result> {
  readonly events: readonly SluiceEvent[]
  readonly result: Result
}

interface AppendResult<Result> {
  readonly result: Result
  /** The state at the end of the log. `follow` folds what was appended since. */
  readonly fold: Fold
}

/** How long an append is repeated while other writers are faster. */
const timeoutMs = 10_000

/** Bytes of the parts of one event; a NATS server accepts 1 MiB by default. */
const eventBytes = 256 * 1024

/** The log, in messages. */
export const eventLog = 'the event log'

/**
 * Appends the events that `decide` makes of the state at the end of the log, at the position for which they were made,
 * so that no other writer has changed that state meanwhile. `decide` may be called several times. `after` is called
 * once they are in the log, and can read on.
 * @throws UsageError
 */
export async function changeLog<Result>(
  place: LogPlace,
  report: Output['report'],
  decide: (fold: Fold) => LogChange<Result>,
  after: (appended: AppendResult<Result>, readOn: () => Promise<void>) => unknown = () => undefined,
): Promise<Result> {
  const { fold } = await readState(place, report)
  const log = await joinLog(place)
  const readOn = async () => {
    const from = (fold.position + 1) as Position
    for await (const recorded of log.read({ from })) fold.apply(recorded)
  }
  try {
    for (const end = performance.now() + timeoutMs; ; ) {
      await readOn()
      const { events, result } = decide(fold)
      if (await append(log, fold, events)) {
        await after({ fold, result }, readOn)
        return result
      }
      if (performance.now() > end) {
        throw new UsageError(
          `other writers have changed the log for ${timeoutMs / 1_000} s, so nothing was stored; try again`,
        )
      }
    }
  } catch (error) {
    throw error instanceof LogError ? new UsageError(`${eventLog}: ${error.message}`) : error
  } finally {
    await log.close()
  }
}

/** Opens the log to append to it, beside the gateway that runs. */
async function joinLog({ logFile = '', nats }: LogPlace): Promise<EventLog> {
  if (nats !== undefined) {
    const { openNatsLog } = await import('../../../control/log/nats.ts')
    return openNatsLog({ servers: nats, create: false })
  }
  if (!isDatabase(logFile)) {
    throw new UsageError(`${logFile} is an export of a log, which cannot be changed`)
  }
  return joinEmbeddedLog(logFile)
}

/** Returns false if another writer was faster. */
async function append(log: EventLog, fold: Fold, events: readonly SluiceEvent[]): Promise<boolean> {
  if (events.length === 0) return true
  const appended = await log.append(events, { expectedVersion: fold.position as Position })
  if (appended.ok) return true
  const [problem] = appended.problems
  if (problem?.reason === 'conflict') return false
  throw new UsageError(`${eventLog}: ${problem?.message ?? 'nothing was appended'}`)
}

/** Divides parts of an event so that the texts of each event are small enough. There is at least one event. */
export function inEvents<Part>(
  parts: readonly Part[],
  bytesOf: (part: Part) => number,
): readonly (readonly Part[])[] {
  const events: Part[][] = [[]]
  let bytes = 0
  for (const part of parts) {
    const more = bytesOf(part)
    if (bytes > 0 && bytes + more > eventBytes) {
      events.push([])
      bytes = 0
    }
    bytes += more
    events.at(-1)?.push(part)
  }
  return events
}
