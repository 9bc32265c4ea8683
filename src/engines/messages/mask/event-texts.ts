/** The texts of events of a streamed response, and those of them that continue inside deltas. */
import { type JsonObject, withFields } from '../json/json.ts'
import { type DeltaMap, keepPieces, mapAsides, mapAsidesOf, type Path } from './delta-texts.ts'
import { mapEntries, mapResponseField, type TextsMap } from './texts.ts'

/** A piece of text in an event. */
export interface Piece {
  /** Name of the text that the piece belongs to: a whole message, or a field of a choice. */
  readonly run: string
  /** Name of the part that the piece belongs to: a content block or a content part. */
  readonly part: string
  readonly text: string
  /** True if it is no text of a message, but one inside a delta, which continues at the same path. */
  readonly isAside?: true
}

/** The texts of an event, and the names of the parts that the event ends. */
export interface EventTexts {
  readonly pieces?: readonly Piece[]
  /** Returns an event with other texts, one for each piece: the event itself, or the one from `repeat`. */
  readonly put?: (texts: readonly string[], event: JsonObject) => JsonObject
  /** Whether the event begins a part, whose text follows in deltas. */
  readonly begins?: boolean
  /** Prefix of the names of the parts that end with this event. */
  readonly ends?: string
  /** Maps all other texts of the event, many of which repeat texts that were streamed. */
  readonly repeat: (map: TextsMap) => JsonObject
  /** True if the event repeats the whole response. */
  readonly isWhole?: boolean
}

/** Finds the texts in an event. */
export type ReadEvent = (event: JsonObject) => EventTexts

/** The name of the only text of messages in formats whose events show where parts end. */
export const message = 'message'
/** The prefix of the names of other texts in these formats. */
export const asidesPrefix = 'aside/'

/** Maps the texts of an event outside of one field, which contains what was streamed. */
export const mapRestOfEvent = (event: JsonObject, map: TextsMap, skipped: string): JsonObject =>
  mapEntries(event, (name, value) =>
    name === skipped ? value : mapResponseField(event, name, map),
  )

/** The piece at a path of an event or of a choice. `item` is the prefix of its names. */
export function asideOf(item: string, path: Path, text: string): Piece {
  const run = item + JSON.stringify(path)
  return { run, part: run, text, isAside: true }
}

/** Adds the texts in members of an event that continue at the same path of later ones of the same type. */
export function withAsides(
  base: EventTexts,
  event: JsonObject,
  item: string,
  mapMembers: (event: JsonObject, map: DeltaMap) => JsonObject,
): EventTexts {
  const asides: Piece[] = []
  const prefix = asidesPrefix + item + String(event.type)
  mapMembers(event, {
    ...keepPieces,
    aside: (text, path) => {
      asides.push(asideOf(prefix, path, text))
      return text
    },
  })
  const main = base.pieces?.length ?? 0
  const put = (texts: readonly string[], written: JsonObject) => {
    let at = main
    const next = base.put?.(texts.slice(0, main), written) ?? written
    return mapMembers(next, { ...keepPieces, aside: () => texts[at++] ?? '' })
  }
  return {
    ...base,
    pieces: [...(base.pieces ?? []), ...asides],
    put,
    repeat: (map) => mapMembers(base.repeat(map), { ...keepPieces, whole: map }),
  }
}

/** Reads an event whose `delta`, or all of it, is no text that is known here. */
export function readDelta(event: JsonObject, item: string): EventTexts {
  const hasDelta = Object.hasOwn(event, 'delta')
  const repeat = (map: TextsMap) => (hasDelta ? mapRestOfEvent(event, map, 'delta') : event)
  return withAsides({ repeat }, event, item, (one, map) =>
    hasDelta
      ? withFields(one, { delta: mapAsides(one, undefined, 'delta', [], map) })
      : mapAsidesOf(one, undefined, [], map),
  )
}

/** Does the event continue texts of earlier ones? */
export const isDelta = (event: JsonObject): boolean =>
  typeof event.type === 'string' && (Object.hasOwn(event, 'delta') || /[._]delta$/.test(event.type))
