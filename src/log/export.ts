/**
 * An export is a log as text: one line of JSON for each event, `{"position":1,"event":{…}}`, in order. It can
 * be attached to a bug report and replayed on another machine.
 */
import { closeSync, createReadStream, openSync, readSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { type AnyCloudEvent, UnknownEventTypeError, upcast } from '../../events/index.ts'
import { maxEventBytes } from './encode.ts'
import { LogError, type Position, type Recorded } from './log.ts'

export function exportLine({ position, event }: Recorded): string {
  return `${JSON.stringify({ position, event })}\n`
}

/** Maximum bytes of a line, which has an event and its position. */
const maxLineBytes = maxEventBytes + 65_536

/** Whether the first line of a file is that of an export. */
export function isExport(path: string): boolean {
  try {
    parseLine(firstLine(path), path)
    return true
  } catch (error) {
    // An event of a newer version is an event too.
    return error instanceof LogError && error.cause instanceof UnknownEventTypeError
  }
}

function firstLine(path: string): string {
  const bytes = Buffer.alloc(maxLineBytes)
  const file = openSync(path, 'r')
  try {
    const length = readSync(file, bytes, 0, bytes.length, 0)
    const end = bytes.subarray(0, length).indexOf('\n')
    return withoutMark(bytes.toString('utf8', 0, end < 0 ? length : end))
  } finally {
    closeSync(file)
  }
}

/** Removes the byte order mark that some editors add. */
const withoutMark = (text: string) => (text.startsWith('\uFEFF') ? text.slice(1) : text)

/**
 * Reads an export, with events upcast to their current version.
 * @throws LogError `foreign` if a line is not an event or out of order; the message names the line
 */
export async function* readExport(path: string): AsyncGenerator<Recorded> {
  let line = 0
  let last = 0
  for await (const text of createInterface({ input: createReadStream(path, 'utf8') })) {
    line++
    const written = line === 1 ? withoutMark(text) : text
    if (written.trim() === '') continue
    const place = `${path}:${line}`
    const recorded = parseLine(written, place)
    if (recorded.position <= last) {
      const order = `position ${recorded.position} stands behind position ${last}`
      throw new LogError('foreign', `${place} is not in its place: ${order}`)
    }
    last = recorded.position
    yield recorded
  }
}

function parseLine(text: string, place: string): Recorded {
  try {
    const value = JSON.parse(text) as { position?: Position; event?: AnyCloudEvent } | null
    const { position, event } = value ?? {}
    if (position === undefined || !Number.isSafeInteger(position) || position < 1) {
      throw new TypeError('it has no position')
    }
    return { position, event: upcast(event as AnyCloudEvent) }
  } catch (cause) {
    const why = cause instanceof SyntaxError ? 'it is not JSON' : (cause as Error).message
    throw new LogError('foreign', `${place} is not an event of a log: ${why}`, { cause })
  }
}
