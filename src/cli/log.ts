/** `sluice log`: the events, in order; with `-o json` an export that replay reads. */
import type { SluiceEvent } from '../../events/index.ts'
import { exportLine } from '../log/export.ts'
import { type OfflineOptions, readRecording } from './offline.ts'
import { exitCode, type Output, type OutputFormat, table } from './output.ts'

function detail({ type, data }: SluiceEvent): string {
  switch (type) {
    case 'dev.sluice.resource.applied.v1':
      return `generation ${data.generation}`
    case 'dev.sluice.resource.deleted.v1':
      return data.cause
    case 'dev.sluice.resource.refused.v1':
      return data.problems.map(({ path, message }) => `${path}: ${message}`).join('; ')
    case 'dev.sluice.relist.finished.v1':
      return `${data.count} objects`
    case 'dev.sluice.desired.published.v1':
      return `digest ${data.digest}, +${data.upserted} -${data.removed}`
    case 'dev.sluice.config.acked.v1':
      return `in force up to ${data.sequence}`
    case 'dev.sluice.config.rejected.v1':
      return `${data.key}: ${data.message}`
    default:
      return ''
  }
}

/** `dev.sluice.resource.applied.v1` -> `resource.applied`. */
function shortType(type: string): string {
  return type.replace(/^dev\.sluice\./, '').replace(/\.v[0-9]+$/, '')
}

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
    detail(event),
  ])
  output.print(table([['POSITION', 'TIME', 'EVENT', 'ABOUT', 'DETAIL'], ...rows]))
  return exitCode.fine
}
