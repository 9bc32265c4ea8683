/**
 * The events of a log in a compact form: columns for what lists and filters need, and the bytes of each line,
 * which are decoded when an event is looked at.
 */
import { eventDetail, shortType } from '../../src/explain/event-text.ts'
import { ExportLines } from '../../src/log/export-lines.ts'
import { type ObjectKey, objectKey } from '../../src/model/names.ts'
import type { RecordedEvent } from '../../src/replay/index.ts'

/** What a list shows of an event. */
export interface EventRow {
  readonly position: number
  readonly time: string
  /** Without prefix and version, such as `resource.applied`. */
  readonly type: string
  /** Key of the object that the event is about; empty if it is about none. */
  readonly object: ObjectKey
  readonly detail: string
  /** Numbers of statuses and of resources for proxies that the event changed. */
  readonly statuses: number
  readonly resources: number
}

/** Numbers for texts that occur often. */
class Names {
  readonly texts: string[] = []
  readonly #numbers = new Map<string, number>()

  numberOf(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    this.#numbers.set(text, this.texts.length)
    return this.texts.push(text) - 1
  }
}

const utf8 = new TextDecoder()

export class EventTable {
  readonly positions: number[] = []
  readonly timesMs: number[] = []
  /** Number of the type in `types.texts`. */
  readonly typeOf: number[] = []
  /** Number of the object in `objects.texts`; that of the empty text if the event is about none. */
  readonly objectOf: number[] = []
  readonly statuses: number[] = []
  readonly resources: number[] = []
  readonly types = new Names()
  readonly objects = new Names()
  readonly #lines: Uint8Array[] = []
  readonly #byObject = new Map<ObjectKey, number[]>()

  get length(): number {
    return this.positions.length
  }

  add(
    recorded: RecordedEvent,
    line: Uint8Array,
    changed: Pick<EventRow, 'statuses' | 'resources'>,
  ) {
    const { position, event } = recorded
    const object = objectOf(recorded)
    if (object !== '') {
      const indexes = this.#byObject.get(object)
      if (indexes === undefined) this.#byObject.set(object, [this.length])
      else indexes.push(this.length)
    }
    this.#lines.push(line)
    this.positions.push(position)
    this.timesMs.push(Date.parse(event.time))
    this.typeOf.push(this.types.numberOf(shortType(event.type)))
    this.objectOf.push(this.objects.numberOf(object))
    this.statuses.push(changed.statuses)
    this.resources.push(changed.resources)
  }

  /** Index of the last event at or before a position; -1 if there is none. */
  indexAt(position: number): number {
    let low = 0
    let high = this.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.positions[middle] ?? 0) <= position) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  /** Index of the last event at or before a time; -1 if there is none. */
  indexAtTime(timeMs: number): number {
    return this.timesMs.findLastIndex((time) => time <= timeMs)
  }

  read(index: number): RecordedEvent {
    const recorded = new ExportLines('the log').read(this.text(index))
    if (recorded === undefined) throw new RangeError(`the log has no event ${index}`)
    return recorded
  }

  /** The line of an event as it was read. */
  text(index: number): string {
    return utf8.decode(this.#lines[index])
  }

  /** Indexes of the events about an object. */
  about(object: ObjectKey): readonly number[] {
    return this.#byObject.get(object) ?? []
  }

  row(index: number): EventRow {
    const { position, event } = this.read(index)
    return {
      position,
      time: event.time,
      type: shortType(event.type),
      object: this.objects.texts[this.objectOf[index] ?? 0] ?? '',
      detail: eventDetail(event),
      statuses: this.statuses[index] ?? 0,
      resources: this.resources[index] ?? 0,
    }
  }
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
