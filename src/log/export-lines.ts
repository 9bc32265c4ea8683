/**
 * An export is a log as text: one line of JSON for each event, `{"position":1,"event":{…}}`, in order. It can
 * be attached to a bug report and replayed on another machine, or in a browser.
 */
import { type AnyCloudEvent, upcast } from '../../events/index.ts'
import { maxEventBytes } from './encode.ts'
import { LogError, type Position, type Recorded } from './log.ts'

export function exportLine({ position, event }: Recorded): string {
  return `${JSON.stringify({ position, event })}\n`
}

/** Maximum bytes of a line, which has an event and its position. */
export const maxLineBytes = maxEventBytes + 65_536

/** Reads the lines of one export in order. `name` of the file is for errors. */
export class ExportLines {
  readonly #name: string
  #line = 0
  #last = 0

  constructor(name: string) {
    this.#name = name
  }

  /**
   * Returns the event of the next line, upcast to its current version, or undefined if the line is blank.
   * @throws LogError `foreign` if the line is not an event or out of order; the message names the line
   */
  read(text: string): Recorded | undefined {
    this.#line++
    const written = this.#line === 1 ? withoutMark(text) : text
    if (written.trim() === '') return undefined
    const place = `${this.#name}:${this.#line}`
    const recorded = parseLine(written, place)
    if (recorded.position <= this.#last) {
      const order = `position ${recorded.position} stands behind position ${this.#last}`
      throw new LogError('foreign', `${place} is not in its place: ${order}`)
    }
    this.#last = recorded.position
    return recorded
  }
}

/** Removes the byte order mark that some editors add. */
const withoutMark = (text: string) => (text.startsWith('\uFEFF') ? text.slice(1) : text)

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
