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
  type OptInPiece,
  type ReadEvent,
  readDelta,
} from '../../mask/event-texts.ts'
import type { Place } from '../../mask/places.ts'
import { mapBlock, mapResponseField, mapResponseTexts } from '../../mask/texts.ts'
import { mapEntries, type TextsMap } from '../../mask/texts-map.ts'
import { responsesTexts } from './texts.ts'

/** Events with arguments of calls, reasoning or audio. */
const unreadTypes =
  /^response\.(?:reasoning.*|audio|.*(?:arguments|call_input|call_command|operation_diff))\.(?:delta|done)$/
/** Fields of such events that are not read. */
const unreadFields = new Set(['delta', 'text', 'arguments', 'input', 'command', 'diff'])

/** Returns the place of the opt-in texts of an event; undefined for audio, which has none. */
const placeOfUnread = (type: string): Place | undefined =>
  type.startsWith('response.audio.')
    ? undefined
    : reasoningType.test(type)
      ? 'Reasoning'
      : 'ToolInput'

const reasoningType = /^response\.reasoning/

/** Maps an opt-in text that repeats what was streamed. */
function mapUnread(type: string, field: string, value: unknown, { optIn }: TextsMap): unknown {
  const place = placeOfUnread(type)
  if (field === 'delta' || typeof value !== 'string' || place === undefined) return value
  return optIn?.has(place) === true ? optIn.map(value, place) : value
}

/** Finds reasoning, and the arguments of calls. */
export function optInOfResponses(event: JsonObject): readonly OptInPiece[] {
  const { type } = event
  if (typeof type !== 'string' || !unreadTypes.test(type) || stringAt(event, 'delta') === undefined)
    return []
  const place = placeOfUnread(type)
  const indexes = ['output_index', 'content_index', 'summary_index'].map(
    (name) => numberAt(event, name) ?? 0,
  )
  return place === undefined
    ? []
    : [{ place, part: `${indexes.join('/')}/${type}`, path: ['delta'] }]
}

export const readResponsesEvent: ReadEvent = (event) => {
  const { type } = event
  const output = `${numberAt(event, 'output_index') ?? 0}/`
  const part = `${output}${numberAt(event, 'content_index') ?? 0}/`
  if (typeof type === 'string' && unreadTypes.test(type)) {
    const mapRead = (map: TextsMap) =>
      mapEntries(event, (field, value) =>
        unreadFields.has(field)
          ? mapUnread(type, field, value, map)
          : mapResponseField(event, field, map),
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
  const ofCall = type.includes('_call') ? ({ place: 'ToolInput' } as const) : {}
  return { pieces: [{ run: message, part, text, ...ofCall }], put, repeat }
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
