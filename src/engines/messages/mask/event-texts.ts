/** The texts in the events of a streamed answer. */
import type { StreamEvent } from '../chat.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { isLabel } from './text-fields.ts'
import { mapAnswerField, mapEntries, type TextsMap } from './texts.ts'

/** A piece of text in an event. */
export interface Piece {
  /** Name of the text that the piece belongs to: a whole message, or a field of a choice. */
  readonly run: string
  /** Name of the part that the piece belongs to: a content block or a content part. */
  readonly part: string
  readonly text: string
  /** Returns an event that continues the part with `text` and contains nothing else. */
  more(text: string): StreamEvent
}

/** The texts of an event, and the names of the texts and parts that the event ends. */
export interface EventTexts {
  readonly pieces?: readonly Piece[]
  /** Returns an event with other texts, one for each piece: the event itself, or the one from `repeat`. */
  readonly put?: (texts: readonly string[], event: JsonObject) => JsonObject
  /** Name of the part that begins with this event, which is held until the part has a text. */
  readonly begins?: string
  /** Prefix of the names of the parts that end with this event. */
  readonly ends?: string
  /** Prefixes of the names of the texts that are complete with this event. */
  readonly completes?: readonly string[]
  /** Maps all other texts of the event, many of which repeat texts that were streamed. */
  readonly repeat: (map: TextsMap) => JsonObject
  /** True if the event repeats the whole answer. */
  readonly isWhole?: boolean
}

/** Finds the texts in an event; `name` is the name of the event. */
export type ReadEvent = (event: JsonObject, name: string | undefined) => EventTexts

/** A prefix that all names begin with. */
export const everything = ['']

export const eventOf = (name: string | undefined, body: JsonObject): StreamEvent => ({
  event: name,
  data: JSON.stringify(body),
})

/** Returns the fields of an event that are no texts: other texts were in the event itself. */
export function labelsOf(event: JsonObject): JsonObject {
  const names = Object.keys(event).filter((name) => {
    const value = event[name]
    if (name === 'usage') return false
    return typeof value === 'string'
      ? isLabel(event, name)
      : !isObject(value) && !Array.isArray(value)
  })
  return Object.fromEntries(names.map((name) => [name, event[name]]))
}

/** Maps the texts of an event outside of one field, which contains what was streamed. */
export const mapRestOfEvent = (event: JsonObject, map: TextsMap, skipped: string): JsonObject =>
  mapEntries(event, (name, value) => (name === skipped ? value : mapAnswerField(event, name, map)))

/** The name of the only text in formats whose events show where parts end. */
export const answer = 'answer'
