/** Finds the texts in the events of a streamed answer, in the client's format. */
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import {
  isObject,
  type JsonObject,
  listAt,
  mapList,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
  withFields,
} from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import { mapErrorAnswer } from './error-texts.ts'
import { needEventForm } from './message-forms.ts'
import { answerScope, isLabel, isSkipped, putText, textOfPart } from './text-fields.ts'
import {
  mapAnswerField,
  mapAnswerTexts,
  mapBlock,
  mapBlockRest,
  mapEntries,
  mapMessageOfChoice,
  type TextsMap,
} from './texts.ts'

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

/**
 * Parses an event of a guarded answer; undefined if it is empty. An event that cannot be read could
 * contain anything, so it is rejected. @throws LlmError 502
 */
export function readGuarded(data: string): JsonObject | undefined {
  const parsed = parseJson(data)
  if (isObject(parsed)) return parsed
  if (data === '[DONE]' || data.trim() === '') return undefined
  throw new LlmError(502, 'an event of the answer is not JSON')
}

/** A prefix that all names begin with. */
export const everything = ['']

const eventOf = (name: string | undefined, body: JsonObject): StreamEvent => ({
  event: name,
  data: JSON.stringify(body),
})

/** The names that events may have besides their type. */
const plainNames = new Set<unknown>(['message', 'error', 'ping', 'done'])

/** Returns the name of an event for the client; undefined if the name may be a text. */
export const nameOfEvent = (name: string | undefined, event: JsonObject): string | undefined =>
  name === event.type || plainNames.has(name) ? name : undefined

type MapPiece = (text: string, field: string) => string

/** Maps the texts of a delta together with their fields; each field is a separate text. */
function mapDelta(delta: JsonObject, mapPiece: MapPiece): JsonObject {
  return mapEntries(delta, (name, value) => {
    if (typeof value === 'string') {
      const isText = value !== '' && !isSkipped(delta, 'delta', name, answerScope)
      return isText && !isLabel(delta, name) ? mapPiece(value, name) : value
    }
    if (name === 'audio' && isObject(value)) {
      const transcript = stringAt(value, 'transcript')
      return transcript === undefined || transcript === ''
        ? value
        : withFields(value, { transcript: mapPiece(transcript, 'transcript') })
    }
    if (name !== 'content' || !Array.isArray(value)) return value
    return value.map((part) => {
      const text = textOfPart(part, answerScope)
      return text === undefined || text === ''
        ? part
        : putText(part, mapPiece(text, 'content'), answerScope)
    })
  })
}

/** Maps what a delta contains besides the texts of `mapDelta`. */
function mapRestOfDelta(delta: JsonObject, map: TextsMap): JsonObject {
  return mapEntries(delta, (name, value) => {
    if (typeof value === 'string') return value
    if (name === 'audio' && isObject(value)) return mapBlockRest(value, map, name)
    if (name !== 'content' || !Array.isArray(value)) return mapAnswerField(delta, name, map)
    return value.map((part) => (isObject(part) ? mapBlockRest(part, map, name) : part))
  })
}

/** Maps what a choice contains besides the pieces of text. */
function mapRestOfChoice(choice: unknown, map: TextsMap): unknown {
  if (!isObject(choice)) return mapAnswerField({ choice }, 'choice', map)
  const { message, ...others } = choice
  // Before the choice is complete, a match in a message that is repeated so far may be undecided.
  const known = isObject(message) && choice.finish_reason == null ? others : choice
  return mapEntries(known, (name, value) => {
    if (name === 'text' && typeof value === 'string') return value
    if (name === 'delta' && isObject(value)) return mapRestOfDelta(value, map)
    if (name === 'message' && isObject(value)) return mapMessageOfChoice(value, map)
    return mapAnswerField(choice, name, map)
  })
}

function mapChoices(event: JsonObject, map: (choice: unknown) => unknown): JsonObject {
  if (!Array.isArray(event.choices)) return event
  return withFields(event, {
    choices: mapList(event.choices, map),
  })
}

/** Maps the pieces of text in a choice. Some vendors send `text` instead of a delta. */
function mapPieces(choice: unknown, mapPiece: MapPiece): unknown {
  if (!isObject(choice)) return choice
  return mapEntries(choice, (name, value) => {
    if (name === 'text' && typeof value === 'string' && value !== '') return mapPiece(value, name)
    return name === 'delta' && isObject(value) ? mapDelta(value, mapPiece) : value
  })
}

/** Returns the fields of a choice that continue the text in `field`. */
function choiceText(field: string, text: string): JsonObject {
  if (field === 'text') return { text }
  return { delta: field === 'transcript' ? { audio: { transcript: text } } : { [field]: text } }
}

/** Reads an event. A finish reason completes a choice. */
const readCompletionsEvent: ReadEvent = (event, name) => {
  const pieces: Piece[] = []
  const choices = listAt(event, 'choices')
  for (const choice of choices.filter(isObject)) {
    const index = numberAt(choice, 'index') ?? 0
    mapPieces(choice, (text, field) => {
      const run = `${index}/${field}`
      const more = (rest: string) => {
        const only = { index, ...choiceText(field, rest), logprobs: null, finish_reason: null }
        return eventOf(name, { ...labelsOf(event), choices: [only] })
      }
      pieces.push({ run, part: run, text, more })
      return text
    })
  }
  const ended = choices
    .filter((choice) => isObject(choice) && choice.finish_reason != null)
    .map((choice) => `${numberAt(choice, 'index') ?? 0}/`)
  const completes = event.error == null ? ended : everything
  const put = (texts: readonly string[], written: JsonObject) => {
    let at = 0
    return mapChoices(written, (choice) => mapPieces(choice, () => texts[at++] ?? ''))
  }
  const repeat = (map: TextsMap) => {
    const mapped = mapChoices(event, (choice) => mapRestOfChoice(choice, map))
    return mapRestOfEvent(mapped, map, Array.isArray(event.choices) ? 'choices' : '')
  }
  return { pieces, put, completes, repeat }
}

/** Returns the fields of an event that are no texts: other texts were in the event itself. */
function labelsOf(event: JsonObject): JsonObject {
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
const mapRestOfEvent = (event: JsonObject, map: TextsMap, skipped: string): JsonObject =>
  mapEntries(event, (name, value) => (name === skipped ? value : mapAnswerField(event, name, map)))

/** The name of the only text in formats whose events show where parts end. */
export const answer = 'answer'

const readMessagesEvent: ReadEvent = (event, name) => {
  const { type } = event
  const repeatAll = (map: TextsMap) => mapBlock(event, map)
  switch (type) {
    case 'message_start': {
      const message = objectAt(event, 'message')
      return {
        repeat: (map) =>
          withFields(mapRestOfEvent(event, map, 'message'), {
            message: message && mapAnswerTexts(message, 'Messages', map),
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

/** Events with arguments of calls, reasoning or audio. */
const unreadTypes =
  /^response\.(?:reasoning.*|audio|.*(?:arguments|call_input|call_command|operation_diff))\.(?:delta|done)$/
/** Fields of such events that are not read. */
const unreadFields = new Set(['delta', 'text', 'arguments', 'input', 'command', 'diff'])

const readResponsesEvent: ReadEvent = (event, name) => {
  const { type } = event
  const output = `${numberAt(event, 'output_index') ?? 0}/`
  const part = `${output}${numberAt(event, 'content_index') ?? 0}/`
  if (typeof type === 'string' && unreadTypes.test(type)) {
    const mapRead = (map: TextsMap) =>
      mapEntries(event, (field, value) =>
        unreadFields.has(field) ? value : mapAnswerField(event, field, map),
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
      return { completes: everything, repeat: (map) => mapBlock(event, map) }
  }
  const text = stringAt(event, 'delta')
  if (text === undefined || typeof type !== 'string' || !type.endsWith('.delta')) {
    const isEnd = typeof type === 'string' && type.endsWith('.done')
    return { ...readWhole(event), ...(isEnd && { ends: part }) }
  }
  const put = ([delta = '']: readonly string[], written: JsonObject) => ({ ...written, delta })
  const more = (rest: string) => eventOf(name, { ...labelsOf(event), delta: rest })
  const repeat = (map: TextsMap) => mapRestOfEvent(event, map, 'delta')
  return { pieces: [{ run: answer, part, text, more }], put, repeat }
}

const lastTypes = new Set<unknown>(['response.completed', 'response.incomplete', 'response.failed'])

/** Reads an event that contains the whole response, or one without text that continues. */
function readWhole(event: JsonObject): EventTexts {
  const response = objectAt(event, 'response')
  if (response === undefined) return { repeat: (map) => mapBlock(event, map) }
  const repeat = (map: TextsMap) =>
    withFields(mapRestOfEvent(event, map, 'response'), {
      response: mapAnswerTexts(response, 'Responses', map),
    })
  return {
    repeat,
    isWhole: true,
    ...(lastTypes.has(event.type) && { completes: everything }),
  }
}

/** Maps an item or a part as if it were the only one of an answer. */
function mapPart(event: JsonObject, name: 'item' | 'part', map: TextsMap): JsonObject {
  const rest = mapRestOfEvent(event, map, name)
  if (!Object.hasOwn(event, name)) return rest
  const value = event[name]
  const item = name === 'item' ? value : { content: [value] }
  const [mapped] = listAt(mapAnswerTexts({ output: [item] }, 'Responses', map), 'output')
  const found = name === 'item' ? mapped : listAt(mapped, 'content')[0]
  return withFields(rest, { [name]: found })
}

/** Reads an event of a guarded answer. @throws LlmError 502 if it has another format. */
const guarded =
  (format: ChatFormat): ReadEvent =>
  (event, name) =>
    needEventForm(event, format) === 'event'
      ? eventReaders[format](event, name)
      : { completes: everything, repeat: (map) => mapErrorAnswer(event, map), isWhole: true }

/** Readers of events that guards judge: an error has a text in each of its strings, and anything else is refused. */
export const guardedReaders: Readonly<Record<ChatFormat, ReadEvent>> = {
  Completions: guarded('Completions'),
  Messages: guarded('Messages'),
  Responses: guarded('Responses'),
}

export const eventReaders: Readonly<Record<ChatFormat, ReadEvent>> = {
  Completions: readCompletionsEvent,
  Messages: readMessagesEvent,
  Responses: readResponsesEvent,
}
