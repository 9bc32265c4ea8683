/**
 * An export is a log as text: one line of JSON for each event, `{"position":1,"event":{…}}`, in order. It can
 * be attached to a bug report and replayed on another machine, or in a browser.
 *
 * It may have stored snapshots, so that a reader can begin at the nearest one. A snapshot follows the event of
 * its position, in one or more lines:
 *
 *   {"snapshot":{"position":10000,"foldVersion":"11","part":1,"parts":2,"gzip":"H4sI…"}}
 *
 * The parts of `gzip`, joined and decoded from Base64, are the compressed JSON of the state.
 */
import { type AnyCloudEvent, type SluiceEvent, upcastExported } from '../../../events/index.ts'
import { withoutCredentials } from '../../ground/secrets/redact-credentials.ts'
import { maxEventBytes } from './encode.ts'
import { LogError, type Position, type Recorded } from './log.ts'

/**
 * Writes an event as a line of an export, without credentials that are in clear text. A line
 * that leaves out any is marked with `"redacted":true`, since the fold of the export then differs.
 */
export function exportLine({ position, event, redacted }: Recorded): string {
  const shown = withoutManifestCredentials(event)
  if (shown === event) return line({ position, event })
  const isRedacted = redacted === true || JSON.stringify(shown) !== JSON.stringify(event)
  return line({ position, event: shown, ...(isRedacted && { redacted: true }) })
}

/** The event itself if it has no manifests. */
function withoutManifestCredentials(event: SluiceEvent): SluiceEvent {
  if (event.type === 'dev.sluice.resource.applied.v1') {
    const object = withoutCredentials(event.data.object) as typeof event.data.object
    return { ...event, data: { ...event.data, object } }
  }
  if (event.type !== 'dev.sluice.pin.set.v1') return event
  const objects = withoutCredentials(event.data.objects) as typeof event.data.objects
  return { ...event, data: { ...event.data, objects } }
}

const line = (recorded: Recorded): string => `${JSON.stringify(recorded)}\n`

/** Maximum bytes of a line, which has an event and its position. */
export const maxLineBytes = maxEventBytes + 65_536

/** One line of a snapshot. */
export interface SnapshotPart {
  readonly position: number
  readonly foldVersion: string
  /** Number of this part, from 1. */
  readonly part: number
  readonly parts: number
  /** Whether clear-text credentials of the configuration were removed from the state. */
  readonly redacted?: true
  /** Base64. */
  readonly gzip: string
}

/** Every line of a snapshot begins with this. */
export const snapshotMark = '{"snapshot":{'

export const snapshotLine = (snapshot: SnapshotPart): string => `${JSON.stringify({ snapshot })}\n`

/** Maximum number of parts of a snapshot. */
const maxParts = 4_096

/** Reads one line of a snapshot. @throws LogError `foreign` */
function readSnapshotLine(text: string, place: string): SnapshotPart {
  try {
    const { snapshot } = JSON.parse(text) as { snapshot: Partial<SnapshotPart> }
    const { position, foldVersion, part, parts, redacted, gzip } = snapshot
    if (!isNumber(position, 1, Number.MAX_SAFE_INTEGER)) throw new TypeError('it has no position')
    if (typeof foldVersion !== 'string') throw new TypeError('it has no fold version')
    if (!isNumber(parts, 1, maxParts) || !isNumber(part, 1, parts) || typeof gzip !== 'string') {
      throw new TypeError('it is not a part of a whole')
    }
    const isRedacted = redacted === true && { redacted }
    return { position, foldVersion, part, parts, ...isRedacted, gzip }
  } catch (cause) {
    const why = cause instanceof SyntaxError ? 'it is not JSON' : (cause as Error).message
    throw new LogError('foreign', `${place} is not a part of a snapshot: ${why}`, { cause })
  }
}

const isNumber = (value: unknown, least: number, most: number): value is number =>
  Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most

/** Reads one line. `place` is the file and the line, for errors. */
type ReadLine<Line> = (text: string, place: string) => Line

/** Reads the lines of one export in order. `name` of the file is for errors. */
export class ExportLines<Line extends { readonly position: number } = Recorded> {
  readonly #name: string
  readonly #readLine: ReadLine<Line>
  readonly #onSnapshot: (part: SnapshotPart) => void
  /** Number of lines that were read. */
  line = 0
  #last = 0

  /**
   * Events are upcast to their current version, unless `readLine` reads something else from a line. Snapshots
   * are passed to `onSnapshot`, or ignored if it is omitted.
   */
  constructor(
    name: string,
    readLine: ReadLine<Line> = readExportLine as ReadLine<never>,
    onSnapshot: (part: SnapshotPart) => void = () => undefined,
  ) {
    this.#name = name
    this.#readLine = readLine
    this.#onSnapshot = onSnapshot
  }

  /**
   * Returns the event of the next line, or undefined if the line is blank or belongs to a snapshot.
   * @throws LogError `foreign` if the line is neither, or out of order; the message names the line
   */
  read(text: string): Line | undefined {
    this.line++
    const written = this.line === 1 ? withoutMark(text) : text
    if (written.trim() === '') return undefined
    const place = `${this.#name}:${this.line}`
    if (written.startsWith(snapshotMark)) {
      const part = readSnapshotLine(written, place)
      this.#moveTo(part.position, this.#last, place)
      this.#onSnapshot(part)
      return undefined
    }
    const recorded = this.#readLine(written, place)
    this.#moveTo(recorded.position, this.#last + 1, place)
    return recorded
  }

  #moveTo(position: number, least: number, place: string): void {
    if (position < least) {
      const order = `position ${position} stands behind position ${this.#last}`
      throw new LogError('foreign', `${place} is not in its place: ${order}`)
    }
    this.#last = position
  }
}

/** Removes the byte order mark that some editors add. */
const withoutMark = (text: string) => (text.startsWith('\uFEFF') ? text.slice(1) : text)

interface ExportedLine {
  readonly position: Position
  readonly event: AnyCloudEvent
  readonly redacted: boolean
}

/** Reads one line of an export. @throws LogError `foreign` */
export function readExportLine(text: string, place: string): Recorded {
  try {
    const value = JSON.parse(text) as Partial<ExportedLine> | null
    const { position, event, redacted } = value ?? {}
    if (position === undefined || !Number.isSafeInteger(position) || position < 1) {
      throw new TypeError('it has no position')
    }
    const isRedacted = redacted === true && { redacted }
    return { position, event: upcastExported(event as AnyCloudEvent), ...isRedacted }
  } catch (cause) {
    const why = cause instanceof SyntaxError ? 'it is not JSON' : (cause as Error).message
    throw new LogError('foreign', `${place} is not an event of a log: ${why}`, { cause })
  }
}
