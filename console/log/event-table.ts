/**
 * The events of a log in a compact form: columns for what lists and filters need, and the bytes of each line,
 * which are decoded when an event is looked at.
 */
import { eventDetail, shortType } from '../../src/explain/event-text.ts'
import { ExportLines, readExportLine } from '../../src/log/export-lines.ts'
import { LogError } from '../../src/log/log.ts'
import type { ObjectKey } from '../../src/model/names.ts'
import type { RecordedEvent } from '../../src/replay/index.ts'
import { readHead } from './event-head.ts'

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
  readonly #name: string
  readonly #heads: ExportLines<ReturnType<typeof readHead>>
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
  readonly #lineNumbers: number[] = []
  #time = { text: '', ms: Number.NaN }
  readonly #byObject = new Map<ObjectKey, number[]>()

  /** `name` of the log is for errors. */
  constructor(name: string) {
    this.#name = name
    this.#heads = new ExportLines(name, readHead)
  }

  get length(): number {
    return this.positions.length
  }

  /** Adds the event of a line. Throws like `ExportLines`. */
  add(line: Uint8Array): void {
    const head = this.#heads.read(utf8.decode(line))
    if (head === undefined) return
    const { position, type, time, object } = head
    if (object !== '') {
      const indexes = this.#byObject.get(object)
      if (indexes === undefined) this.#byObject.set(object, [this.length])
      else indexes.push(this.length)
    }
    this.#lines.push(line)
    this.#lineNumbers.push(this.#heads.line)
    this.positions.push(position)
    this.timesMs.push(this.#msOf(time))
    this.typeOf.push(this.types.numberOf(shortType(type)))
    this.objectOf.push(this.objects.numberOf(object))
    this.statuses.push(0)
    this.resources.push(0)
  }

  /** Notes what an event changed. */
  setChanged(index: number, { statuses, resources }: Pick<EventRow, 'statuses' | 'resources'>) {
    this.statuses[index] = statuses
    this.resources[index] = resources
  }

  /** Drops the events from an index on. */
  truncate(length: number): void {
    const columns = [this.positions, this.timesMs, this.typeOf, this.objectOf]
    for (const column of [...columns, this.statuses, this.resources]) column.length = length
    this.#lines.length = length
    this.#lineNumbers.length = length
    for (const indexes of this.#byObject.values()) {
      while ((indexes.at(-1) ?? -1) >= length) indexes.pop()
    }
  }

  /** Many events have the same time. */
  #msOf(time: string): number {
    if (time !== this.#time.text) this.#time = { text: time, ms: Date.parse(time) }
    return this.#time.ms
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

  /** @throws LogError `foreign` if the rest of the line is not what its head promised */
  read(index: number): RecordedEvent {
    const place = `${this.#name}:${this.#lineNumbers[index]}`
    const recorded = readExportLine(this.text(index), place)
    if (recorded.position === this.positions[index]) return recorded
    throw new LogError('foreign', `${place} is not an event of a log: it has two positions`)
  }

  /** The line of an event as it was read. */
  text(index: number): string {
    const line = this.#lines[index]
    if (line === undefined) throw new RangeError(`the log has no event ${index}`)
    return utf8.decode(line)
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
