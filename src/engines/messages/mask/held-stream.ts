/**
 * A streamed response, or a window of one, that is held until guards have checked all of it. Guards can replace its
 * texts; its events are then released with the current texts. Events keep their order; the first event of a
 * changed text contains the whole text.
 */
import type { Mask } from '../../core/index.ts'
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../format.ts'
import { type JsonObject, parseJson } from '../json/json.ts'
import { mapErrorsBeside } from './error-texts.ts'
import type { EventTexts, Piece } from './event-texts.ts'
import {
  maskEvents,
  nameOfEvent,
  needUnsignedReasoning,
  type ParsedEvent,
  readGuarded,
  readGuardedEvent,
} from './masked-events.ts'
import type { OnMatch } from './match-counts.ts'
import { type PartText, ReleasedTexts } from './part-texts.ts'
import { maskTexts } from './parts-masker.ts'
import type { Place, Places } from './places.ts'
import { emptyTexts, keepTexts, mapRepeatedTexts } from './repeated-texts.ts'
import { jsonAware, scopedMap, withOptIn } from './scoped-texts.ts'
import type { RoleText } from './slot.ts'
import type { OptInTexts, TextsMap } from './texts-map.ts'

export function readHeld({ event, data }: StreamEvent): ParsedEvent {
  const parsed = readGuarded(data)
  return { event: parsed && nameOfEvent(event, parsed), data, parsed }
}

const mapHeld = (held: ParsedEvent, map: TextsMap): ParsedEvent => ({
  ...held,
  parsed: held.parsed && mapRepeatedTexts(held.parsed, map),
})

const isJson = (text: string): boolean => typeof parseJson(text) === 'object'

/** Texts that guards see as one text: all texts of a choice or of a message. */
interface Group {
  /** Keys of the streamed texts, in order. */
  readonly keys: string[]
  /** Original of a text that an event repeats, but that was not streamed in this form. */
  readonly repeated?: string
  /** The place of the text; undefined for errors, which every guard reads. */
  readonly place: Place | undefined
  /** Whether guards read the text only if their scope names the place (`optInPlaces`). */
  readonly isOptIn: boolean
}

interface HeldOptions {
  /** The texts that earlier windows have released. */
  readonly released?: ReleasedTexts
  readonly hasOptIn?: boolean
}

export class HeldStream {
  readonly #format: ChatFormat
  readonly #released: ReleasedTexts
  /** Whether opt-in texts are read as well. */
  readonly #hasOptIn: boolean
  #events: readonly ParsedEvent[] = []
  /** Current streamed texts, by key. */
  #texts = new Map<string, string>()
  #original: ReadonlyMap<string, string> = new Map()
  /** Returns the key of an original text; if several texts are equal, the key of the first one. */
  #keyOf: (text: string) => string | undefined = () => undefined
  #groups = new Map<string, Group>()
  /** Current texts by their originals, for repeated texts that were not streamed. */
  #repeated = new Map<string, string>()

  constructor(
    format: ChatFormat,
    events: readonly (StreamEvent | ParsedEvent)[],
    { released = new ReleasedTexts(), hasOptIn = false }: HeldOptions = {},
  ) {
    this.#format = format
    this.#hasOptIn = hasOptIn
    this.#released = released
    this.#load(events.map((event) => ('parsed' in event ? event : readHeld(event))))
    if (released.isChanged) this.#emptyCitations()
  }

  /** Number of characters of all streamed texts. */
  get length(): number {
    return [...this.#texts.values()].reduce((sum, text) => sum + text.length, 0)
  }

  /** The texts that are sent to webhooks, one for each group; those in `scope` if it is set. */
  texts(scope?: Places): RoleText[] {
    return this.#groupsIn(scope).map((group) => ({
      role: 'assistant',
      content: this.#contentOf(group),
    }))
  }

  #groupsIn(scope: Places | undefined): readonly Group[] {
    const isInScope = ({ place, isOptIn }: Group) =>
      scope === undefined ? !isOptIn : place === undefined || scope.has(place)
    return [...this.#groups.values()].filter(isInScope)
  }

  /** Masks the texts like a stream that is not held, unless it only counts for an audit. Returns whether anything was masked. */
  mask(mask: Mask, onMatch?: OnMatch, isAudit = false, scope?: Places): boolean {
    let hasMasked = false
    const through = (onFound?: OnMatch): TextsMap => {
      const map: TextsMap = (texts) => {
        const masked = maskTexts(mask, texts, onFound)
        hasMasked ||= masked.count > 0
        return masked.texts
      }
      return scopedMap(jsonAware(map), scope)
    }
    // Matches in texts that events repeat are not counted again.
    const masked = maskEvents(this.#current(), this.#format, through(onMatch), through())
    if (!isAudit) this.#load(masked)
    return hasMasked
  }

  /** Replaces the texts of all groups, or of those in `scope`; returns false if the texts do not fit. */
  replace(texts: readonly RoleText[], scope?: Places): boolean {
    const groups = this.#groupsIn(scope)
    if (texts.length !== groups.length) return false
    let isChanged = false
    let hasReasoning = false
    for (const [at, group] of groups.entries()) {
      const text = texts[at]?.content ?? ''
      const before = this.#contentOf(group)
      if (text === before) continue
      if (group.place === 'Reasoning' && !hasReasoning) {
        needUnsignedReasoning(this.#events)
        hasReasoning = true
      }
      if (group.isOptIn && group.place === 'ToolInput' && isJson(before) && !isJson(text)) {
        return false
      }
      this.#put(group, text)
      isChanged = true
    }
    if (isChanged) this.#emptyCitations()
    return true
  }

  /** The current texts by the names of their groups. Those that events repeat have their originals as names. */
  contents(): ReadonlyMap<string, string> {
    return new Map([...this.#groups].map(([name, group]) => [name, this.#contentOf(group)]))
  }

  /** The texts of the parts in these events. */
  get parts(): ReadonlyMap<string, PartText> {
    return new Map(
      [...this.#original].map(([key, original]) => [
        key,
        { original, current: this.#texts.get(key) ?? '' },
      ]),
    )
  }

  /**
   * Returns the events with the current texts. All are written again, because other readers may find another
   * value for a repeated key.
   */
  release(): StreamEvent[] {
    return this.#current().map(({ event, data, parsed }) => ({
      event,
      data: parsed === undefined ? data : JSON.stringify(parsed),
    }))
  }

  #current(): ParsedEvent[] {
    const written = new Set<string>()
    return this.#events.map(({ parsed, ...event }) => ({
      ...event,
      parsed: parsed && this.#withTexts(parsed, written),
    }))
  }

  #load(events: readonly ParsedEvent[]): void {
    this.#texts = new Map()
    this.#groups = new Map()
    this.#repeated = new Map()
    this.#events = events.map((event) => mapHeld(event, keepTexts))
    for (const { parsed } of this.#events) if (parsed !== undefined) this.#collect(parsed)
    this.#original = new Map(this.#texts)
    this.#keyOf = this.#released.index(this.#original)
    for (const { parsed } of this.#events) if (parsed !== undefined) this.#collectRepeated(parsed)
  }

  #read(event: JsonObject): EventTexts {
    return readGuardedEvent(this.#format, event, this.#hasOptIn)
  }

  #collect(event: JsonObject): void {
    const { groups } = this.#format.events
    for (const name of groups.in(event)) this.#group(name)
    for (const piece of this.#read(event).pieces ?? []) {
      const { part: key, text, isAside } = piece
      const before = this.#texts.get(key)
      if (before === undefined) {
        this.#group(isAside ? key : groups.of(key), piece).keys.push(key)
      }
      this.#texts.set(key, (before ?? '') + text)
    }
  }

  /** Collects texts that the provider repeats in another form than it streamed: guards must see them too. */
  #collectRepeated(event: JsonObject): void {
    const add = (text: string, place: Place | undefined, isOptIn: boolean) => {
      if (text === '' || this.#repeated.has(text) || this.#keyOf(text) !== undefined) return text
      this.#repeated.set(text, text)
      this.#groups.set(`repeated ${text}`, { keys: [], repeated: text, place, isOptIn })
      return text
    }
    const collect = this.#withOptIn(
      (texts, _, place) => texts.map((text) => add(text, place, false)),
      (text, place) => add(text, place, true),
    )
    this.#read(event).repeat(collect)
    mapErrorsBeside(event, collect)
  }

  /** Adds a map of opt-in texts to a map. */
  #withOptIn(map: TextsMap, optIn: OptInTexts['map']): TextsMap {
    return withOptIn(map, this.#hasOptIn ? { has: () => true, map: optIn } : undefined)
  }

  #group(name: string, { place = 'Messages', isOptIn }: Partial<Piece> = {}): Group {
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = { keys: [], place, isOptIn: isOptIn === true }
      this.#groups.set(name, group)
    }
    return group
  }

  #contentOf({ keys, repeated }: Group): string {
    if (repeated !== undefined) return this.#repeated.get(repeated) ?? ''
    return keys
      .map((key) => this.#texts.get(key) ?? '')
      .filter((text) => text !== '')
      .join(' ')
  }

  /** Replaces the text of a group: the last non-empty text becomes `text`, and the others become empty. */
  #put({ keys, repeated }: Group, text: string): void {
    if (repeated !== undefined) {
      this.#repeated.set(repeated, text)
      return
    }
    const last = keys.findLast((key) => this.#texts.get(key) !== '') ?? keys.at(-1)
    for (const key of keys) this.#texts.set(key, key === last ? text : '')
  }

  #withTexts(event: JsonObject, written: Set<string>): JsonObject {
    const current = this.#withOptIn(
      (all) => all.map((text) => this.#currentOf(text)),
      (text) => this.#currentOf(text),
    )
    return mapErrorsBeside(this.#withContent(event, written, current), current)
  }

  #withContent(event: JsonObject, written: Set<string>, current: TextsMap): JsonObject {
    const { pieces = [], put, repeat, begins } = this.#read(event)
    const texts = pieces.map(({ part, text }) => {
      const now = this.#texts.get(part) ?? ''
      const original = this.#original.get(part)
      if (now === original) return text
      // The text goes into a delta if there is one, because blocks begin empty.
      if (begins === true && text === '' && original !== '') return ''
      const isWritten = written.has(part)
      written.add(part)
      return isWritten ? '' : now
    })
    const repeated = repeat(current)
    const isSame = texts.every((text, at) => text === pieces[at]?.text)
    return isSame || put === undefined ? repeated : put(texts, repeated)
  }

  /** Returns the current text in place of a text that an event repeats. */
  #currentOf(text: string): string {
    const repeated = this.#repeated.get(text)
    if (repeated !== undefined) return repeated
    const key = this.#keyOf(text)
    if (key === undefined) return text
    return (this.#released.get(key)?.current ?? '') + (this.#texts.get(key) ?? '')
  }

  /** Empties citations, because guards have not checked them. */
  #emptyCitations(): void {
    this.#events = this.#events.map((event) => mapHeld(event, emptyTexts))
  }
}
