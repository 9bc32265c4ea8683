/** The texts in events. */
import {
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  stringAt,
  withFields,
} from '../../json/json.ts'
import {
  type EventTexts,
  isDelta,
  mapRestOfEvent,
  message,
  type ReadEvent,
  readDelta,
} from '../../mask/event-texts.ts'
import {
  mapBlock,
  mapEntries,
  mapResponseField,
  mapResponseTexts,
  type TextsMap,
} from '../../mask/texts.ts'
import { responsesTexts } from './texts.ts'

/** Events with arguments of calls, reasoning or audio. */
const unreadTypes =
  /^response\.(?:reasoning.*|audio|.*(?:arguments|call_input|call_command|operation_diff))\.(?:delta|done)$/
/** Fields of such events that are not read. */
const unreadFields = new Set(['delta', 'text', 'arguments', 'input', 'command', 'diff'])

export const readResponsesEvent: ReadEvent = (event) => {
  const { type } = event
  const output = `${numberAt(event, 'output_index') ?? 0}/`
  const part = `${output}${numberAt(event, 'content_index') ?? 0}/`
  if (typeof type === 'string' && unreadTypes.test(type)) {
    const mapRead = (map: TextsMap) =>
      mapEntries(event, (field, value) =>
        unreadFields.has(field) ? value : mapResponseField(event, field, map),
      )
    return { repeat: mapRead }
  }
  switch (type) {
    case 'response.content_part.added':
      return { repeat: (map) => mapPart(event, 'part', map) }
    case 'response.content_part.done':
      return { ends: part, repeat: (map) => mapPart(event, 'part', map) }
    case 'response.output_item.added':
      return { repeat: (map) => mapPart(event, 'item', map) }
    case 'response.output_item.done':
      return { ends: output, repeat: (map) => mapPart(event, 'item', map) }
    case 'error':
      return { repeat: (map) => mapBlock(event, map) }
  }
  const text = stringAt(event, 'delta')
  if (text === undefined || typeof type !== 'string' || !type.endsWith('.delta')) {
    const isEnd = typeof type === 'string' && type.endsWith('.done')
    if (!isEnd && isDelta(event) && objectAt(event, 'response') === undefined) {
      return readDelta(event, part)
    }
    return { ...readWhole(event), ...(isEnd && { ends: part }) }
  }
  const put = ([delta = '']: readonly string[], written: JsonObject) => ({ ...written, delta })
  const repeat = (map: TextsMap) => mapRestOfEvent(event, map, 'delta')
  return { pieces: [{ run: message, part, text }], put, repeat }
}

/** Reads an event that contains the whole response, or one without text that continues. */
function readWhole(event: JsonObject): EventTexts {
  const response = objectAt(event, 'response')
  if (response === undefined) return { repeat: (map) => mapBlock(event, map) }
  const repeat = (map: TextsMap) =>
    withFields(mapRestOfEvent(event, map, 'response'), {
      response: mapResponseTexts(response, responsesTexts, map),
    })
  return { repeat, isWhole: true }
}

/** Maps an item or a part as if it were the only one of a response. */
function mapPart(event: JsonObject, name: 'item' | 'part', map: TextsMap): JsonObject {
  const rest = mapRestOfEvent(event, map, name)
  if (!Object.hasOwn(event, name)) return rest
  const value = event[name]
  const item = name === 'item' ? value : { content: [value] }
  const [mapped] = listAt(mapResponseTexts({ output: [item] }, responsesTexts, map), 'output')
  const found = name === 'item' ? mapped : listAt(mapped, 'content')[0]
  return withFields(rest, { [name]: found })
}
