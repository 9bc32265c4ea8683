/**
 * A streamed answer that is kept back until guards have judged all of it: its texts as a whole answer
 * would have them, and its events again with the texts that are left. The order of events is kept; the
 * first event of a text tells all of it.
 */
import type { Mask } from '../../../core/index.ts'
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import { type JsonObject, listAt, numberAt } from '../json.ts'
import { emptyTexts, keepTexts, mapRepeatedTexts } from './repeated-texts.ts'
import type { RoleText } from './slots.ts'
import { StreamMasker } from './stream-mask.ts'
import { eventReaders, type Reading, readGuarded } from './stream-texts.ts'
import type { TextsMap } from './texts.ts'

interface HeldEvent extends StreamEvent {
  readonly parsed: JsonObject | undefined
}

function mapHeld(held: HeldEvent, map: TextsMap): HeldEvent {
  const parsed = held.parsed && mapRepeatedTexts(held.parsed, map)
  return parsed === held.parsed ? held : { ...held, parsed, data: JSON.stringify(parsed) }
}

/** Texts that a guard is shown as one: those of a choice, of a message. */
interface Group {
  /** Identities of streamed texts, in order. */
  readonly keys: string[]
  /** A text that events repeat and that was not streamed in this form. */
  readonly repeated?: string
}

export class HeldStream {
  readonly #format: ChatFormat
  #events: readonly HeldEvent[] = []
  /** What is left of each text, by its identity. */
  #texts = new Map<string, string>()
  #original: ReadonlyMap<string, string> = new Map()
  /** The first identity of each text that was streamed. */
  #keyOf: ReadonlyMap<string, string> = new Map()
  #groups = new Map<string, Group>()
  /** Repeated texts that are no streamed ones, and what is left of them. */
  #repeated = new Map<string, string>()

  constructor(format: ChatFormat, events: readonly StreamEvent[]) {
    this.#format = format
    this.#load(events)
  }

  /** Characters of all texts. */
  get length(): number {
    return [...this.#texts.values()].reduce((sum, text) => sum + text.length, 0)
  }

  /** As guards outside are shown them. */
  get texts(): RoleText[] {
    return [...this.#groups.values()].map((group) => ({
      role: 'assistant',
      content: this.#contentOf(group),
    }))
  }

  /** Masks the texts as in a stream that is not held; was anything masked? */
  mask(mask: Mask): boolean {
    const masker = new StreamMasker([mask], this.#format, Number.POSITIVE_INFINITY)
    try {
      const events = this.release().flatMap((event) => masker.push(event))
      this.#load([...events, ...masker.finish()])
      return masker.hasMasked
    } finally {
      masker.dispose()
    }
  }

  /** Texts for those that were shown; false where there are not as many. */
  replace(texts: readonly RoleText[]): boolean {
    if (texts.length !== this.#groups.size) return false
    let at = 0
    let isChanged = false
    for (const group of this.#groups.values()) {
      const text = texts[at++]?.content ?? ''
      if (text === this.#contentOf(group)) continue
      this.#put(group, text)
      isChanged = true
    }
    // The guard was not shown the texts of citations.
    if (isChanged) this.#events = this.#events.map((event) => mapHeld(event, emptyTexts))
    return true
  }

  /** The events as they may go on. */
  release(): StreamEvent[] {
    const told = new Set<string>()
    return this.#events.map(({ event, data, parsed }) => {
      if (parsed === undefined) return { event, data }
      const changed = this.#changed(parsed, told)
      return { event, data: changed === parsed ? data : JSON.stringify(changed) }
    })
  }

  #load(events: readonly StreamEvent[]): void {
    this.#texts = new Map()
    this.#groups = new Map()
    this.#repeated = new Map()
    this.#events = events.map((event) => {
      const held = { ...event, parsed: readGuarded(event.data) }
      return mapHeld(held, keepTexts)
    })
    for (const { parsed } of this.#events) if (parsed !== undefined) this.#collect(parsed)
    this.#original = new Map(this.#texts)
    // The first of equal texts is set last.
    this.#keyOf = new Map([...this.#original].reverse().map(([key, text]) => [text, key]))
    for (const { parsed } of this.#events) if (parsed !== undefined) this.#collectRepeated(parsed)
  }

  #read(event: JsonObject): Reading {
    return eventReaders[this.#format](event, undefined)
  }

  #collect(event: JsonObject): void {
    if (this.#format === 'Completions') {
      for (const choice of listAt(event, 'choices'))
        this.#group(`${numberAt(choice, 'index') ?? 0}`)
    } else if (this.#format === 'Messages') this.#group('')
    for (const { part: key, text } of this.#read(event).pieces) {
      const before = this.#texts.get(key)
      if (before === undefined) this.#group(this.#groupOf(key)).keys.push(key)
      this.#texts.set(key, (before ?? '') + text)
    }
  }

  /** A provider that repeats something else than it has streamed must not slip through. */
  #collectRepeated(event: JsonObject): void {
    this.#read(event).repeat?.((texts) => {
      for (const text of texts) {
        if (text === '' || this.#keyOf.has(text) || this.#repeated.has(text)) continue
        this.#repeated.set(text, text)
        this.#groups.set(`repeated ${this.#repeated.size}`, { keys: [], repeated: text })
      }
      return texts
    })
  }

  #group(name: string): Group {
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = { keys: [] }
      this.#groups.set(name, group)
    }
    return group
  }

  #groupOf(key: string): string {
    return this.#format === 'Messages' ? '' : (key.split('/')[0] ?? '')
  }

  #contentOf({ keys, repeated }: Group): string {
    if (repeated !== undefined) return this.#repeated.get(repeated) ?? ''
    return keys
      .map((key) => this.#texts.get(key) ?? '')
      .filter((text) => text !== '')
      .join(' ')
  }

  /** Of several texts the last one that has any takes it all. */
  #put({ keys, repeated }: Group, text: string): void {
    if (repeated !== undefined) {
      this.#repeated.set(repeated, text)
      return
    }
    const last = keys.findLast((key) => this.#texts.get(key) !== '') ?? keys.at(-1)
    for (const key of keys) this.#texts.set(key, key === last ? text : '')
  }

  #changed(event: JsonObject, told: Set<string>): JsonObject {
    const { pieces, put, repeat } = this.#read(event)
    const texts = pieces.map(({ part, text }) => {
      const left = this.#texts.get(part) ?? ''
      if (left === this.#original.get(part)) return text
      const isTold = told.has(part)
      told.add(part)
      return isTold ? '' : left
    })
    if (repeat !== undefined) return repeat((all) => all.map((text) => this.#left(text)))
    return texts.every((text, at) => text === pieces[at]?.text) ? event : put(texts)
  }

  /** What is left of a text that an event repeats. */
  #left(text: string): string {
    const repeated = this.#repeated.get(text)
    if (repeated !== undefined) return repeated
    const key = this.#keyOf.get(text)
    return key === undefined ? text : (this.#texts.get(key) ?? '')
  }
}
