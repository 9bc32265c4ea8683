/** `sluice log` prints the events in order; with `-o json`, as an export that other commands can read. */
import type { SluiceEvent } from '../../events/index.ts'
import { eventDetail, shortType } from '../explain/event-text.ts'
import { exportLine } from '../log/export-lines.ts'
import { type Answer, type Output, table } from './output.ts'
import { type RecordingOptions, readRecording } from './recording.ts'

/** The subject of an event without its prefix: the kind, namespace and name of an object. */
function shortSubject({ subject }: SluiceEvent): string {
  return subject.split('.').slice(2).join(' ')
}

export async function printLog(
  options: RecordingOptions & { readonly subject?: string },
  report: Output['report'],
): Promise<Answer> {
  const recording = await readRecording(options, report)
  const { subject = '' } = options
  const events = recording.events.filter(({ event }) => shortSubject(event).includes(subject))
  const rows = () =>
    events.map(({ position, event }) => [
      String(position),
      event.time,
      shortType(event.type),
      shortSubject(event),
      eventDetail(event),
    ])
  return {
    text: () => [table([['POSITION', 'TIME', 'EVENT', 'ABOUT', 'DETAIL'], ...rows()])],
    jsonLines: () => events.map((recorded) => exportLine(recorded).trimEnd()),
  }
}
