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

/** Reads one line. `place` is the file and the line, for errors. */
type ReadLine<Line> = (text: string, place: string) => Line

/** Reads the lines of one export in order. `name` of the file is for errors. */
export class ExportLines<Line extends { readonly position: number } = Recorded> {
  readonly #name: string
  readonly #readLine: ReadLine<Line>
  /** Number of lines that were read. */
  line = 0
  #last = 0

  /** Events are upcast to their current version, unless `readLine` reads something else from a line. */
  constructor(name: string, readLine: ReadLine<Line> = readExportLine as ReadLine<never>) {
    this.#name = name
    this.#readLine = readLine
  }

  /**
   * Returns the event of the next line, or undefined if the line is blank.
   * @throws LogError `foreign` if the line is not an event or out of order; the message names the line
   */
  read(text: string): Line | undefined {
    this.line++
    const written = this.line === 1 ? withoutMark(text) : text
    if (written.trim() === '') return undefined
    const place = `${this.#name}:${this.line}`
    const recorded = this.#readLine(written, place)
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

/** Reads one line of an export. @throws LogError `foreign` */
export function readExportLine(text: string, place: string): Recorded {
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
