/**
 * Masks the texts of a streamed response of which all events are known. A text is masked as in a whole response,
 * however the provider cut it into events, blocks and parts. The first delta of a part that changes gets all of
 * its text.
 */
import type { ChatFormat, EventFormat } from '../format.ts'
import { isObject, type JsonObject, numberAt, parseJson } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import { mapErrorResponse, mapErrorsBeside } from './error-texts.ts'
import {
  asidesPrefix,
  type EventTexts,
  message,
  type Piece,
  withOptInPieces,
} from './event-texts.ts'
import { needEventForm } from './message-forms.ts'
import { signedReasoning } from './opt-in-texts.ts'
import type { Place } from './places.ts'
import { mapRepeatedTexts } from './repeated-texts.ts'
import { withOptIn } from './scoped-texts.ts'
import type { TextsMap } from './texts-map.ts'

/** An event of a streamed response; `parsed` is omitted if it has no JSON. */
export interface ParsedEvent {
  readonly event: string | undefined
  readonly data: string
  readonly parsed: JsonObject | undefined
}

/** A part of a text: a content block, a content part, or a field of a choice. */
interface TextPart {
  readonly place: Place
  original: string
  masked: string
  /** The piece that gets the text if it changes: the first one in a delta, because blocks begin empty. */
  first: Piece | undefined
  firstDelta: Piece | undefined
}

/**
 * Parses an event of a guarded response; undefined if it is empty. An event that cannot be read could
 * contain anything, so it is rejected. @throws LlmError 502
 */
export function readGuarded(data: string): JsonObject | undefined {
  const parsed = parseJson(data)
  if (isObject(parsed)) return parsed
  if (data === '[DONE]' || data.trim() === '') return undefined
  throw new LlmError(502, 'an event of the response is not JSON')
}

/** The names that events may have besides their type. */
const plainNames = new Set<unknown>(['message', 'error', 'ping', 'done'])

/** Returns the name of an event for the client; undefined if the name may be a text. */
export const nameOfEvent = (name: string | undefined, event: JsonObject): string | undefined =>
  name === event.type || plainNames.has(name) ? name : undefined

/**
 * Reads an event that guards judge: an error has a text in each of its strings, and anything else than an event of
 * the format is refused. `hasOptIn` adds opt-in texts. @throws LlmError 502
 */
export function readGuardedEvent(
  format: ChatFormat,
  event: JsonObject,
  hasOptIn = false,
): EventTexts {
  if (needEventForm(event, format) === 'error') {
    return { repeat: (map) => mapErrorResponse(event, map), isWhole: true }
  }
  const { events } = format
  const texts = events.read(event)
  return hasOptIn ? withOptInPieces(texts, event, events.optIn(event)) : texts
}

const signature = /"signature"\s*:\s*"[^"]/

/** @throws LlmError 502 if reasoning with a signature would be changed */
export function needUnsignedReasoning(events: readonly ParsedEvent[]): void {
  if (events.some(({ data }) => signature.test(data))) throw signedReasoning(true)
}

interface ReadEvent {
  readonly held: ParsedEvent
  readonly texts: EventTexts | undefined
  /** The part that each piece belongs to. */
  readonly parts: readonly TextPart[]
}

/** Returns the events with masked texts. `mask` maps the texts that are streamed, `maskOther` all others. */
export function maskEvents(
  events: readonly ParsedEvent[],
  format: ChatFormat,
  mask: TextsMap,
  maskOther: TextsMap,
): ParsedEvent[] {
  const streamed = new StreamedTexts(mask.optIn !== undefined)
  const read = events.map((held) => {
    const { event, data, parsed: whole } = held
    const parsed = whole && mapErrorsBeside(mapRepeatedTexts(whole, maskOther), maskOther)
    const texts = parsed && readGuardedEvent(format, parsed, mask.optIn !== undefined)
    return { held: { event, data, parsed }, texts, parts: streamed.add(texts) }
  })
  if (streamed.mask(mask)) needUnsignedReasoning(events)
  const writer = new MaskedEventWriter(format.events, maskOther)
  return read.flatMap((event) => writer.write(event))
}

/** Finds the parts of the texts in a stream. */
class StreamedTexts {
  readonly #hasScope: boolean
  readonly #parts = new NamedItems<TextPart>()
  /** The parts of each text. */
  readonly #texts = new NamedItems<TextPart[]>()
  readonly #all: TextPart[][] = []

  constructor(hasScope: boolean) {
    this.#hasScope = hasScope
  }

  /** Adds the pieces of the next event; returns their parts. */
  add(texts: EventTexts | undefined): readonly TextPart[] {
    const begins = texts?.begins === true
    const parts = (texts?.pieces ?? []).map((piece) => this.#add(piece, begins))
    const ended = texts?.ends
    if (ended !== undefined) {
      this.#parts.end(ended)
      this.#end(asidesPrefix + ended)
    }
    return parts
  }

  /** Masks each text as a whole. Returns whether reasoning has changed. */
  mask(mask: TextsMap): boolean {
    let hasChanged = false
    for (const parts of this.#all) {
      const place = parts[0]?.place
      const masked = mask(
        parts.map(({ original }) => original),
        false,
        place,
      )
      for (const [at, part] of parts.entries()) {
        part.masked = masked[at] ?? ''
        if (place === 'Reasoning' && part.masked !== part.original) hasChanged = true
      }
    }
    return hasChanged
  }

  #add(piece: Piece, begins: boolean): TextPart {
    const part = this.#parts.get(piece.part, () => {
      const { place = 'Messages' } = piece
      const created = { place, original: '', masked: '', first: undefined, firstDelta: undefined }
      this.#textOf(piece).push(created)
      return created
    })
    part.original += piece.text
    part.first ??= piece
    if (!begins) part.firstDelta ??= piece
    return part
  }

  #textOf({ run, place }: Piece): TextPart[] {
    return this.#texts.get(
      place !== undefined && this.#hasScope ? `${run} at ${place}` : run,
      () => {
        const parts: TextPart[] = []
        this.#all.push(parts)
        return parts
      },
    )
  }

  #end(prefix: string): void {
    this.#parts.end(prefix)
    this.#texts.end(prefix)
  }
}

/** Names end with at most this number of prefixes, each of which ends with `/`. */
const maxPrefixes = 3

/** Items by name, until the name ends: a name that comes again then is that of another item. */
class NamedItems<Item> {
  readonly #items = new Map<string, { readonly item: Item; readonly since: number }>()
  /** When the names with a prefix have ended: the number of ends until then. */
  readonly #ended = new Map<string, number>()
  #ends = 0

  get(name: string, create: () => Item): Item {
    const known = this.#items.get(name)
    if (known !== undefined && !this.#hasEnded(name, known.since)) return known.item
    const item = create()
    this.#items.set(name, { item, since: this.#ends })
    return item
  }

  /** Ends the names that begin with a prefix: all if it is empty. */
  end(prefix: string): void {
    this.#ended.set(prefix, ++this.#ends)
  }

  #hasEnded(name: string, since: number): boolean {
    let at = 0
    for (let count = 0; count <= maxPrefixes; count++) {
      if ((this.#ended.get(name.slice(0, at)) ?? 0) > since) return true
      at = name.indexOf('/', at) + 1
      if (at === 0) return false
    }
    return false
  }
}

/** Writes the events of a stream with the masked texts. */
class MaskedEventWriter {
  readonly #format: EventFormat
  readonly #maskOther: TextsMap
  readonly #maskRepeated: TextsMap
  /** Masked texts by their originals, for later events that repeat the text of a part. */
  readonly #repeated = new Map<string, string>()
  /** Indexes of blocks for the client by those of the provider; undefined for removed blocks. */
  readonly #indexes = new Map<number, number | undefined>()
  /** Number of blocks that were removed, because their text became empty. */
  #removed = 0

  constructor(format: EventFormat, maskOther: TextsMap) {
    this.#format = format
    this.#maskOther = maskOther
    this.#maskRepeated = withOptIn((...text) => this.#repeat(...text), maskOther.optIn)
  }

  /** Returns the event, or nothing if its block is removed. */
  write({ held, texts, parts }: ReadEvent): ParsedEvent[] {
    const { parsed } = held
    if (texts === undefined || parsed === undefined) return [held]
    if (this.#format.repeatsTexts) this.#remember(texts, parts)
    const { pieces = [], put, repeat, isWhole } = texts
    const rest = repeat(isWhole === true ? this.#maskOther : this.#maskRepeated)
    const all = pieces.map((piece, at) => textOf(piece, parts[at]))
    const isSame = put === undefined || all.every((text, at) => text === pieces[at]?.text)
    const begun = texts.begins === true ? parts[0] : undefined
    const placed = this.#placed(isSame ? rest : put(all, rest), begun)
    return placed === undefined ? [] : [{ ...held, parsed: placed }]
  }

  /** Returns the event with the index for the client; undefined if its block is removed. */
  #placed(event: JsonObject, begun: TextPart | undefined): JsonObject | undefined {
    const index = this.#format.losesEmptyParts ? numberAt(event, 'index') : undefined
    if (index === undefined) return event
    if (!this.#indexes.has(index)) {
      const isRemoved = begun !== undefined && begun.original !== '' && begun.masked === ''
      this.#indexes.set(index, isRemoved ? undefined : index - this.#removed)
      if (isRemoved) this.#removed++
    }
    const now = this.#indexes.get(index)
    if (now === undefined) return undefined
    return now === index ? event : { ...event, index: now }
  }

  #remember({ pieces }: EventTexts, parts: readonly TextPart[]): void {
    for (const [at, { original, masked }] of parts.entries()) {
      if (pieces?.[at]?.run === message && original !== '') this.#repeated.set(original, masked)
    }
  }

  /** Returns the masked forms of texts that were streamed; masks texts that were not. */
  #repeat(texts: readonly string[], isContent?: boolean, place?: Place): readonly string[] {
    const known = texts.flatMap((text) => this.#repeated.get(text) ?? [])
    return known.length === texts.length ? known : this.#maskOther(texts, isContent, place)
  }
}

/** Returns the text for a piece. */
function textOf(piece: Piece, part: TextPart | undefined): string {
  if (part === undefined || part.masked === part.original) return piece.text
  return piece === (part.firstDelta ?? part.first) ? part.masked : ''
}
