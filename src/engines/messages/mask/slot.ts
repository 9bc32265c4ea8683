/** Texts as webhooks and moderation see them, with their places. */
import { appendAll } from '../../../ground/base/append-all.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import type { Places } from './places.ts'
import { usualMap } from './scoped-texts.ts'
import type { OwnTexts } from './text-fields.ts'
import { mapResponseField } from './texts.ts'
import type { TextsMap } from './texts-map.ts'

/** A text with the role of its author. */
export interface RoleText {
  readonly role: string
  readonly content: string
}

/** The texts of a field. */
export interface Slot extends RoleText {
  /** Index of the text that gets a changed content: the last text of a message, otherwise the last one. */
  readonly last: number
  /** Maps the texts in place. */
  put(map: TextsMap): void
}

export type MapField = (holder: JsonObject, name: string, map: TextsMap) => unknown

/** Returns the slot of a field, with the texts in `scope`, but without opt-in texts. */
export function slotOf(
  holder: JsonObject,
  name: string,
  role: string,
  mapField: MapField,
  scope?: Places,
): Slot {
  const texts: string[] = []
  let last = -1
  const collect: TextsMap = (parts, isContent) => {
    appendAll(texts, parts)
    if (isContent === true) last = texts.length - 1
    return parts
  }
  mapField(holder, name, usualMap(collect, scope))
  return {
    role,
    content: texts.filter((text) => text !== '').join(' '),
    last: last < 0 ? texts.length - 1 : last,
    put: (map) => void Reflect.set(holder, name, mapField(holder, name, usualMap(map, scope))),
  }
}

export const hasText = ({ content }: Slot): boolean => content !== ''

/** Returns the slots of the fields of an object in a response, except those in `skipped`. */
export function otherSlots(
  holder: unknown,
  skipped: readonly string[],
  own?: OwnTexts,
  scope?: Places,
): Slot[] {
  if (!isObject(holder)) return []
  return (
    Object.keys(holder)
      // Webhooks see errors apart.
      .filter((name) => name !== 'error' && !skipped.includes(name))
      .map((name) => responseSlot(holder, name, own, scope))
      .filter(hasText)
  )
}

export const responseSlot = (
  holder: JsonObject,
  name: string,
  own?: OwnTexts,
  scope?: Places,
): Slot =>
  slotOf(
    holder,
    name,
    'assistant',
    (object, at, map) => mapResponseField(object, at, map, own),
    scope,
  )

/** Where whole responses of a format have the texts. */
export interface ResponseSlots {
  /** Returns one slot for each choice, content or message, also if it has no text. */
  messages(body: JsonObject, scope?: Places): Slot[]
  /** Returns the other slots of an item of the field with the messages; omitted if that field is one message. */
  besideMessage?(item: unknown, scope?: Places): Slot[]
}
