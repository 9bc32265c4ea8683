/** `sluice log`: the events, in order; with `-o json` an export that replay reads. */
import type { SluiceEvent } from '../../events/index.ts'
import { exportLine } from '../log/export.ts'
import { eventDetail, shortType } from './event-text.ts'
import { type OfflineOptions, readRecording, tellRecording } from './offline.ts'
import { exitCode, type Output, type OutputFormat, table } from './output.ts'

/** What an event is about, from its subject. */
function about({ subject }: SluiceEvent): string {
  return subject.split('.').slice(2).join(' ')
}

export async function printLog(
  options: OfflineOptions & { readonly subject?: string },
  format: OutputFormat,
  output: Output,
): Promise<number> {
  const recording = await readRecording(options)
  tellRecording(recording, output)
  const { subject } = options
  const events = recording.events.filter(
    ({ event }) => subject === undefined || about(event).includes(subject),
  )
  if (format === 'json') {
    for (const recorded of events) output.print(exportLine(recorded).trimEnd())
    return exitCode.fine
  }
  const rows = events.map(({ position, event }) => [
    String(position),
    event.time,
    shortType(event.type),
    about(event),
    eventDetail(event),
  ])
  output.print(table([['POSITION', 'TIME', 'EVENT', 'ABOUT', 'DETAIL'], ...rows]))
  return exitCode.fine
}
