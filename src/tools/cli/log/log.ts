/** `sluice log` prints the events in order; with `-o json`, as an export that other commands can read. */
import type { SluiceEvent } from '../../../../events/index.ts'
import { snapshotLines } from '../../../control/log/export.ts'
import { exportLine } from '../../../control/log/export-lines.ts'
import {
  type EventLog,
  LogError,
  type Recorded,
  type SnapshotInfo,
} from '../../../control/log/index.ts'
import { eventDetail, shortType } from '../../../past/explain/event-text.ts'
import {
  type OpenRecording,
  type RecordingOptions,
  readRecording,
  reportProblems,
  withRecording,
} from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, table } from '../shared/output.ts'

/** The subject of an event without its prefix: the kind, namespace and name of an object. */
function shortSubject({ subject }: SluiceEvent): string {
  return subject.split('.').slice(2).join(' ')
}

interface LogOptions extends RecordingOptions {
  readonly subject?: string
  /** Whether an export has the stored snapshots too. */
  readonly snapshots?: boolean
}

export async function printLog(
  options: LogOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const recording = await readRecording(options, report)
  const events = recording.events.filter(isAbout(options))
  const rows = events.map(({ position, event }) => [
    String(position),
    event.time,
    shortType(event.type),
    shortSubject(event),
    eventDetail(event),
  ])
  return { text: () => [table([['POSITION', 'TIME', 'EVENT', 'ABOUT', 'DETAIL'], ...rows])] }
}

const isAbout =
  ({ subject = '' }: LogOptions) =>
  ({ event }: Recorded) =>
    shortSubject(event).includes(subject)

/** Prints an export while the log is read, so that only a few events are in memory. */
export function exportLog(options: LogOptions, output: Output): Promise<number> {
  const isSelected = isAbout(options)
  return withRecording(options, async (recording) => {
    const print = printer(output)
    const snapshots = options.snapshots === true ? await storedIn(recording, output) : []
    for await (const recorded of recording.events) {
      if (!(await printSnapshots(snapshots, recorded.position, print))) break
      if (isSelected(recorded) && !(await print(exportLine(recorded)))) break
    }
    await printSnapshots(snapshots, Number.POSITIVE_INFINITY, print)
    reportProblems(recording, output.report)
    return exitCode.success
  })
}

/** Prints a line and resolves to false if nothing more is wanted. */
type PrintLine = (line: string) => Promise<boolean>

function printer({ print, ready }: Output): PrintLine {
  return async (line) => {
    print(line.trimEnd())
    return ready === undefined || (await ready())
  }
}

/** A snapshot that is loaded when it is printed. */
interface Stored {
  readonly position: number
  readonly lines: () => Promise<string[]>
}

async function storedIn({ source }: OpenRecording, { report }: Output): Promise<Stored[]> {
  if (source === undefined) {
    report('--snapshots: only a log file or a NATS server has snapshots')
    return []
  }
  const { log, to } = source
  const infos = (await log.snapshots()).filter(({ position }) => position <= to)
  return infos.map((info) => ({
    position: info.position,
    lines: async () => {
      const state = await loadSnapshot(log, info, report)
      return state === undefined ? [] : snapshotLines(state)
    },
  }))
}

/** Prints the snapshots before a position, and removes them from the list. */
async function printSnapshots(
  snapshots: Stored[],
  before: number,
  print: PrintLine,
): Promise<boolean> {
  for (let next = snapshots[0]; next !== undefined && next.position < before; next = snapshots[0]) {
    snapshots.shift()
    for (const line of await next.lines()) if (!(await print(line))) return false
  }
  return true
}

/** Undefined if the snapshot is damaged, or was removed since. */
async function loadSnapshot(log: EventLog, info: SnapshotInfo, report: Output['report']) {
  const { position, foldVersion } = info
  try {
    const loaded = await log.loadSnapshot({ atMost: position, foldVersion })
    return loaded?.position === position ? loaded : undefined
  } catch (error) {
    if (!(error instanceof LogError && error.code === 'corrupt')) throw error
    report(`${error.message}; it is left out`)
    return undefined
  }
}
