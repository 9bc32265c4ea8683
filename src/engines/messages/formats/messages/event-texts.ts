/** The texts in events. */
import { type JsonObject, numberAt, objectAt, stringAt, withFields } from '../../json/json.ts'
import {
  answer,
  type EventTexts,
  eventOf,
  everything,
  mapRestOfEvent,
  type Piece,
  type ReadEvent,
} from '../../mask/event-texts.ts'
import { answerScope, isLabel, isSkipped } from '../../mask/text-fields.ts'
import {
  mapAnswerField,
  mapAnswerTexts,
  mapBlock,
  mapEntries,
  type TextsMap,
} from '../../mask/texts.ts'
import { messagesTexts } from './texts.ts'

export const readMessagesEvent: ReadEvent = (event, name) => {
  const { type } = event
  const repeatAll = (map: TextsMap) => mapBlock(event, map)
  switch (type) {
    case 'message_start': {
      const message = objectAt(event, 'message')
      return {
        repeat: (map) =>
          withFields(mapRestOfEvent(event, map, 'message'), {
            message: message && mapAnswerTexts(message, messagesTexts, map),
          }),
      }
    }
    case 'content_block_start':
      return readBlock(event, name, 'content_block', ['text'])
    case 'content_block_delta':
      return readBlock(event, name, 'delta', namesOfDelta(objectAt(event, 'delta')))
    case 'content_block_stop':
      return { repeat: repeatAll, ends: `${numberAt(event, 'index') ?? 0}/` }
    case 'message_delta': {
      const isLast = objectAt(event, 'delta')?.stop_reason != null
      return { repeat: repeatAll, ...(isLast && { completes: everything }) }
    }
    case 'message_stop':
    case 'error':
      return { repeat: repeatAll, completes: everything }
    default:
      return { repeat: repeatAll }
  }
}

/** Deltas that contain the whole text. */
const wholeDeltas = new Set<unknown>(['compaction_delta'])

/** Returns the fields of a delta whose text continues in other deltas: all texts, unless the type is known. */
function namesOfDelta(delta: JsonObject | undefined): readonly string[] {
  if (delta === undefined || wholeDeltas.has(delta.type)) return []
  return Object.keys(delta).filter(
    (name) =>
      typeof delta[name] === 'string' &&
      !isSkipped(delta, 'delta', name, answerScope) &&
      !isLabel(delta, name),
  )
}

/** Reads a block or a delta of it; `names` are the fields with text that continues or will continue. */
function readBlock(
  event: JsonObject,
  name: string | undefined,
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
    const type = isMain ? 'text_delta' : block?.type
    const part = isMain ? `${index}/` : `${index}/${field}`
    const more = (text: string) => {
      const delta = { type, [field]: text }
      const named = name === undefined ? undefined : 'content_block_delta'
      return eventOf(named, { type: 'content_block_delta', index, delta })
    }
    return { run: answer, part, text: stringAt(block, field) ?? '', more }
  })
  const repeat = (map: TextsMap) => {
    const mapRest = (field: string, value: unknown) =>
      found.includes(field) || block === undefined ? value : mapAnswerField(block, field, map)
    const rest = block && mapEntries(block, mapRest)
    return withFields(mapRestOfEvent(event, map, key), block === undefined ? {} : { [key]: rest })
  }
  const put = (replaced: readonly string[], written: JsonObject) => {
    const fields = Object.fromEntries(found.map((field, at) => [field, replaced[at] ?? '']))
    return withFields(written, { [key]: withFields(objectAt(written, key) ?? {}, fields) })
  }
  // The text of a block that begins is usually empty; otherwise the client gets it in the deltas that follow.
  return {
    repeat,
    ...(found.length > 0 && { pieces, put }),
    ...(isBlock && found.length > 0 && { begins: `${index}/` }),
  }
}
