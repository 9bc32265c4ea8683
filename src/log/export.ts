/**
 * A log as text: one line of JSON for each event, `{"position":1,"event":{…}}`, in order. Made to be
 * attached to a bug report, kept beside an example and replayed on another machine.
 */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { type AnyCloudEvent, upcast } from '../../events/index.ts'
import { LogError, type Position, type Recorded } from './log.ts'

export function exportLine({ position, event }: Recorded): string {
  return `${JSON.stringify({ position, event })}\n`
}

/**
 * Reads an export, events lifted to their current version.
 * @throws LogError `foreign` where a line is not an event, naming the line.
 */
export async function* readExport(path: string): AsyncGenerator<Recorded> {
  let line = 0
  for await (const text of createInterface({ input: createReadStream(path, 'utf8') })) {
    line++
    if (text.trim() === '') continue
    yield parseLine(text, `${path}:${line}`)
  }
}

function parseLine(text: string, place: string): Recorded {
  try {
    const { position, event } = JSON.parse(text) as { position: Position; event: AnyCloudEvent }
    if (typeof position !== 'number') throw new TypeError('position is not a number')
    return { position, event: upcast(event) }
  } catch (cause) {
    throw new LogError('foreign', `${place} is not an event of a log: ${String(cause)}`, { cause })
  }
}
