/**
 * The events of a log in a compact form: columns for what lists and filters need, and the bytes of each line,
 * which are decoded when an event is looked at. Of a long log on a server, rows are reserved first, listed
 * later, and the lines are fetched when they are needed.
 */

import {
  ExportLines,
  readExportLine,
  type SnapshotPart,
} from '../../src/control/log/export-lines.ts'
import { LogError } from '../../src/control/log/log.ts'
import type { ObjectKey } from '../../src/ground/model/names.ts'
import { eventDetail, shortType } from '../../src/past/explain/event-text.ts'
import type { RecordedEvent } from '../../src/past/replay/index.ts'
import { type EventHead, readHead } from './event-head.ts'

/** What a list shows of an event. */
export interface EventRow {
  readonly position: number
  readonly time: string
  /** Without prefix and version, such as `resource.applied`. */
  readonly type: string
  /** Key of the object that the event is about; empty if it is about none. */
  readonly object: ObjectKey
  readonly detail: string
  /** Numbers of statuses and of resources for proxies that the event changed; -1 if that is not known. */
  readonly statuses: number
  readonly resources: number
}

/** Fetches the lines of events at positions, which ascend. */
export type FetchLines = (positions: readonly number[]) => AsyncIterable<Uint8Array[]>

/** Numbers for texts that occur often. */
class Names {
  readonly texts: string[] = []
  readonly #numbers = new Map<string, number>()

  find(text: string): number | undefined {
    return this.#numbers.get(text)
  }

  numberOf(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    this.#numbers.set(text, this.texts.length)
    return this.texts.push(text) - 1
  }
}

const utf8 = new TextDecoder()

/** Maximum number of lines that are kept because they were looked at. */
const maxFetched = 20_000

export class EventTable {
  readonly #name: string
  readonly #heads: ExportLines<EventHead>
  readonly positions: number[] = []
  /** NaN if the event is not listed yet. */
  readonly timesMs: number[] = []
  /** Number of the type in `types.texts`; that of the empty text if the event is not listed yet. */
  readonly typeOf: number[] = []
  /** Number of the object in `objects.texts`; that of the empty text if the event is about none. */
  readonly objectOf: number[] = []
  readonly statuses: number[] = []
  readonly resources: number[] = []
  readonly types = new Names()
  readonly objects = new Names()
  /** Number of events that are only reserved, and not listed yet. */
  unlisted = 0
  readonly #lines: (Uint8Array | undefined)[] = []
  readonly #lineNumbers: number[] = []
  #time = { text: '', ms: Number.NaN }
  readonly #fetch: FetchLines | undefined
  /** Indexes of events that were looked at, and whose lines may be dropped. */
  #fetched: number[] = []

  /** `name` of the log is for errors. Snapshots in an export are passed to `onSnapshot`. */
  constructor(name: string, onSnapshot?: (part: SnapshotPart) => void, fetch?: FetchLines) {
    this.#name = name
    this.#heads = new ExportLines(name, readHead, onSnapshot)
    this.#fetch = fetch
  }

  get length(): number {
    return this.positions.length
  }

  /** Adds the event of a line. Throws like `ExportLines`. */
  add(line: Uint8Array): void {
    const head = this.#heads.read(utf8.decode(line))
    if (head === undefined) return
    this.#append(head.position)
    this.#list(this.length - 1, head)
    this.#lines[this.length - 1] = line
    this.#lineNumbers[this.length - 1] = this.#heads.line
  }

  /** Adds events that are listed later. */
  reserve(first: number, last: number): void {
    for (let position = first; position <= last; position++) this.#append(position)
  }

  /** Lists an event that was reserved; others are ignored. */
  list(head: EventHead): void {
    const index = this.indexAt(head.position)
    if (this.positions[index] === head.position) this.#list(index, head)
  }

  #append(position: number): void {
    this.positions.push(position)
    this.timesMs.push(Number.NaN)
    this.typeOf.push(this.types.numberOf(''))
    this.objectOf.push(this.objects.numberOf(''))
    this.statuses.push(-1)
    this.resources.push(-1)
    this.#lines.push(undefined)
    this.#lineNumbers.push(0)
    this.unlisted++
  }

  #list(index: number, { type, time, object }: EventHead): void {
    if (this.isListed(index)) return
    this.unlisted--
    this.timesMs[index] = this.#msOf(time)
    this.typeOf[index] = this.types.numberOf(shortType(type))
    this.objectOf[index] = this.objects.numberOf(object)
  }

  isListed(index: number): boolean {
    return !Number.isNaN(this.timesMs[index])
  }

  /** Fetches the lines of events that were reserved, unless they are there. */
  async load(indexes: Iterable<number>): Promise<void> {
    const missing = [...new Set(indexes)].filter((index) => this.#isMissing(index))
    await this.#fetchLines(missing.sort((a, b) => a - b))
    this.#fetched.push(...missing)
    const surplus = Math.max(0, this.#fetched.length - maxFetched)
    for (const index of this.#fetched.splice(0, surplus)) this.#lines[index] = undefined
  }

  /** Fetches the lines of a range and keeps them until they are released. `last` is included. */
  async loadRange(first: number, last: number): Promise<void> {
    const missing: number[] = []
    for (let index = first; index <= last; index++) if (this.#isMissing(index)) missing.push(index)
    await this.#fetchLines(missing)
  }

  /** Drops lines that can be fetched again. */
  release(index: number): void {
    if (this.#fetch !== undefined) this.#lines[index] = undefined
  }

  #isMissing(index: number): boolean {
    return index >= 0 && index < this.length && !this.has(index)
  }

  async #fetchLines(indexes: readonly number[]): Promise<void> {
    if (this.#fetch === undefined || indexes.length === 0) return
    const positions = indexes.map((index) => this.positions[index] ?? 0)
    for await (const lines of this.#fetch(positions)) {
      for (const line of lines) {
        if (line.length === 0) continue
        const head = readHead(utf8.decode(line), this.#name)
        const index = this.indexAt(head.position)
        if (this.positions[index] !== head.position) continue
        this.#list(index, head)
        this.#lines[index] = line
      }
    }
  }

  /** Notes what an event changed. */
  setChanged(index: number, { statuses, resources }: Pick<EventRow, 'statuses' | 'resources'>) {
    this.statuses[index] = statuses
    this.resources[index] = resources
  }

  /** Whether an event is known to have changed a status or a resource for proxies. */
  hasChanged(index: number): boolean {
    return (this.statuses[index] ?? 0) > 0 || (this.resources[index] ?? 0) > 0
  }

  /** Drops the events from an index on. */
  truncate(length: number): void {
    const columns = [this.positions, this.timesMs, this.typeOf, this.objectOf]
    for (const column of [...columns, this.statuses, this.resources]) column.length = length
    this.#lines.length = length
    this.#lineNumbers.length = length
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

  /** Whether the line of an event is there. */
  has(index: number): boolean {
    return this.#lines[index] !== undefined
  }

  /** The line of an event as it was read. */
  text(index: number): string {
    const line = this.#lines[index]
    if (line === undefined) throw new RangeError(`event ${this.positions[index]} is not loaded`)
    return utf8.decode(line)
  }

  /** Indexes of the events about an object, as far as they are listed. */
  about(object: ObjectKey): number[] {
    return this.aboutAll([object]).get(object) ?? []
  }

  /** Indexes of the events about several objects; only those of one type if it is given. */
  aboutAll(objects: readonly ObjectKey[], type?: string): Map<ObjectKey, number[]> {
    const found = new Map<ObjectKey, number[]>()
    const byNumber = new Map<number, number[]>()
    for (const object of objects) {
      const number = this.objects.find(object)
      if (number === undefined || object === '') continue
      const indexes: number[] = []
      found.set(object, indexes)
      byNumber.set(number, indexes)
    }
    const typeNumber = type === undefined ? undefined : this.types.find(type)
    if (byNumber.size === 0 || (type !== undefined && typeNumber === undefined)) return found
    for (let index = 0; index < this.length; index++) {
      if (typeNumber !== undefined && this.typeOf[index] !== typeNumber) continue
      byNumber.get(this.objectOf[index] ?? 0)?.push(index)
    }
    return found
  }

  row(index: number): EventRow {
    const { position, event } = this.read(index)
    return {
      position,
      time: event.time,
      type: shortType(event.type),
      object: this.objects.texts[this.objectOf[index] ?? 0] ?? '',
      detail: eventDetail(event),
      statuses: this.statuses[index] ?? -1,
      resources: this.resources[index] ?? -1,
    }
  }
}
