/** What lists and filters need of an event. It is read from the beginning of a line, in a fraction of the time. */
import { vocabulary } from '../../events/index.ts'
import { readExportLine } from '../../src/control/log/export-lines.ts'
import { parseSubject } from '../../src/control/log/subjects.ts'
import { type ObjectKey, objectKey } from '../../src/ground/model/names.ts'
import type { RecordedEvent } from '../../src/past/replay/index.ts'

export interface EventHead {
  readonly position: number
  readonly type: string
  readonly time: string
  /** Key of the object that the event is about; empty if it is about none. */
  readonly object: ObjectKey
}

const attribute = '"\\w+":(?:"[^"\\\\]*"|\\d+),'
/** A line as `exportLine` writes it, up to the name of the object; texts with escapes are left to JSON.parse. */
const written = new RegExp(
  '^\\{"position":([1-9]\\d{0,14}),"event":\\{"specversion":"1\\.0","id":"[^"\\\\]*","source":"[^"\\\\]*",' +
    '"type":"([\\w.]+)","subject":"[^"\\\\]*","time":"([^"\\\\]+)",' +
    `(?:${attribute}){0,16}"data":\\{` +
    '(?:"kind":"([^"\\\\]+)","namespace":"([^"\\\\]*)","name":"([^"\\\\]+)")?',
)

const knownTypes: ReadonlySet<string> = new Set(vocabulary.map(({ type }) => type))
/** Frequent types of events that are about no object. */
const withoutObject: ReadonlySet<string> = new Set([
  'dev.sluice.config.acked.v1',
  'dev.sluice.desired.published.v1',
])

/**
 * Reads the head of an event from its line. Whether the rest of the line is JSON is only known once it is read.
 * @throws LogError `foreign` if the head is not that of an event
 */
export function readHead(line: string, place: string): EventHead {
  const [, position, type = '', time = '', kind, namespace = '', name = ''] =
    written.exec(line) ?? []
  const isKnown = knownTypes.has(type) && (kind !== undefined || withoutObject.has(type))
  if (!isKnown) return headOf(readExportLine(line, place))
  const object = kind === undefined ? '' : objectKey({ kind, namespace, name })
  return { position: Number(position), type, time, object }
}

function headOf(recorded: RecordedEvent): EventHead {
  const { position, event } = recorded
  return { position, type: event.type, time: event.time, object: objectOf(recorded) }
}

/** The object that an event is about, or that has the resource which a proxy rejected. */
function objectOf({ event }: RecordedEvent): ObjectKey {
  const { data, type } = event
  if (type === 'dev.sluice.config.rejected.v1') {
    const [, object] = /^(?:listener|route|stream)\/([^/]+\/[^/]*\/[^/]+)/.exec(data.key) ?? []
    return object ?? ''
  }
  const {
    kind,
    namespace = '',
    name,
  } = data as {
    readonly kind?: string
    readonly namespace?: string
    readonly name?: string
  }
  return kind === undefined || name === undefined ? '' : objectKey({ kind, namespace, name })
}

/** Types of events whose subject is the object that they are about. */
const aboutObjects: ReadonlySet<string> = new Set(
  vocabulary.filter(({ fields }) => 'kind' in fields).map(({ type }) => type),
)

/** Reads a head as a server lists it: position, time, type and subject. @throws TypeError if it is none */
export function readListedHead(text: string): EventHead {
  const listed = JSON.parse(text) as [position: number, ...texts: string[]]
  const [position, time, type, subject] = listed
  if (
    !Number.isSafeInteger(position) ||
    [time, type, subject].some((one) => typeof one !== 'string')
  ) {
    throw new TypeError('The server listed something else than an event.')
  }
  const { kind = '', namespace = '', name = '' } = parseSubject(subject ?? '') ?? {}
  const isAbout = aboutObjects.has(type ?? '') && kind !== ''
  const object = isAbout ? objectKey({ kind, namespace, name }) : ''
  return { position, time: time ?? '', type: type ?? '', object }
}
