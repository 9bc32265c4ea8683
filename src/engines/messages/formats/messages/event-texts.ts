/** The texts in events. */
import { type JsonObject, numberAt, objectAt, stringAt, withFields } from '../../json/json.ts'
import { mapAsidesOf } from '../../mask/delta-texts.ts'
import {
  type EventTexts,
  isDelta,
  mapRestOfEvent,
  message,
  type OptInPiece,
  type Piece,
  type ReadEvent,
  readDelta,
  withAsides,
} from '../../mask/event-texts.ts'
import { isLabel, isSkipped, responseScope } from '../../mask/text-fields.ts'
import { mapBlock, mapResponseField, mapResponseTexts } from '../../mask/texts.ts'
import { mapEntries, type TextsMap } from '../../mask/texts-map.ts'
import { messagesTexts } from './texts.ts'

export const readMessagesEvent: ReadEvent = (event) => {
  const { type } = event
  const repeatAll = (map: TextsMap) => mapBlock(event, map)
  switch (type) {
    case 'message_start': {
      const started = objectAt(event, 'message')
      if (started === undefined) return { repeat: repeatAll }
      return {
        repeat: (map) =>
          withFields(mapRestOfEvent(event, map, 'message'), {
            message: mapResponseTexts(started, messagesTexts, map),
          }),
      }
    }
    case 'content_block_start':
      return readBlock(event, 'content_block', ['text'])
    case 'content_block_delta':
      return readBlock(event, 'delta', namesOfDelta(objectAt(event, 'delta')))
    case 'content_block_stop':
      return { repeat: repeatAll, ends: `${numberAt(event, 'index') ?? 0}/` }
    case 'message_delta':
      return isDelta(event) ? readDelta(event, 'message/') : { repeat: repeatAll }
    default:
      return { repeat: repeatAll }
  }
}

/** Deltas of blocks that are no part of the message's text. */
const asideDeltas = new Set<unknown>(['compaction_delta'])

/** Returns the fields of a delta that continue the text of the message. */
function namesOfDelta(delta: JsonObject | undefined): readonly string[] {
  if (delta === undefined || asideDeltas.has(delta.type)) return []
  return Object.keys(delta).filter(
    (name) =>
      typeof delta[name] === 'string' &&
      !isSkipped(delta, 'delta', name, responseScope) &&
      !isLabel(delta, name, responseScope),
  )
}

/** Reads a block or a delta of it; `names` are the fields with text that continues or will continue. */
function readBlock(
  event: JsonObject,
  key: 'content_block' | 'delta',
  names: readonly string[],
): EventTexts {
  const block = objectAt(event, key)
  const isBlock = key === 'content_block'
  const isText = block?.type === (isBlock ? 'text' : 'text_delta')
  const index = numberAt(event, 'index') ?? 0
  const texts = isBlock && !isText ? [] : names
  const found = texts.filter((field) => stringAt(block, field) !== undefined)
  const pieces = found.map((field): Piece => {
    const isMain = isText && field === 'text'
    const part = isMain ? `${index}/` : `${index}/${field}`
    return { run: message, part, text: stringAt(block, field) ?? '' }
  })
  const repeat = (map: TextsMap) => {
    const mapRest = (field: string, value: unknown) =>
      found.includes(field) || block === undefined || !isBlock
        ? value
        : mapResponseField(block, field, map)
    const rest = block && mapEntries(block, mapRest)
    if (block === undefined) return mapBlock(event, map)
    return withFields(mapRestOfEvent(event, map, key), { [key]: rest })
  }
  const put = (replaced: readonly string[], written: JsonObject) => {
    const fields = Object.fromEntries(found.map((field, at) => [field, replaced[at] ?? '']))
    return withFields(written, { [key]: withFields(objectAt(written, key) ?? {}, fields) })
  }
  // The text of a block that begins is usually empty; otherwise the client gets it in the deltas that follow.
  const base = { repeat, ...(found.length > 0 && { pieces, put }) }
  if (isBlock) return found.length > 0 ? { ...base, begins: true } : base
  return withAsides(base, event, `${index}/`, (one, map) => {
    const delta = objectAt(one, key)
    return delta === undefined
      ? one
      : withFields(one, { [key]: mapAsidesOf(delta, key, [key], map, found) })
  })
}

const placesOfDelta = { partial_json: 'ToolInput', thinking: 'Reasoning' } as const

/** Finds thinking, and the input of tools. */
export function optInOfMessages(event: JsonObject): readonly OptInPiece[] {
  if (event.type !== 'content_block_delta') return []
  const delta = objectAt(event, 'delta')
  return Object.entries(placesOfDelta).flatMap(([name, place]) => {
    const part = `${numberAt(event, 'index') ?? 0}/${name}`
    return stringAt(delta, name) === undefined ? [] : [{ place, part, path: ['delta', name] }]
  })
}
