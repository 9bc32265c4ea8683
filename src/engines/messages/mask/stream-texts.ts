/** Finds the texts in the events of a streamed answer, in the client's format. */
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
import { type DeltaMap, keepPieces, labelsOf, mapAsidesOf, mapDelta } from './delta-texts.ts'
import { mapErrorAnswer } from './error-texts.ts'
import {
  answer,
  asideOf,
  type EventTexts,
  eventOf,
  everything,
  isDelta,
  mapRestOfEvent,
  type Piece,
  type ReadEvent,
  readDelta,
  withAsides,
} from './event-texts.ts'
import { needEventForm } from './message-forms.ts'
import { answerScope, isLabel, isSkipped } from './text-fields.ts'
import {
  mapAnswerField,
  mapAnswerTexts,
  mapBlock,
  mapEntries,
  mapMessageOfChoice,
  type TextsMap,
} from './texts.ts'

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

/** The names that events may have besides their type. */
const plainNames = new Set<unknown>(['message', 'error', 'ping', 'done'])

/** Returns the name of an event for the client; undefined if the name may be a text. */
export const nameOfEvent = (name: string | undefined, event: JsonObject): string | undefined =>
  name === event.type || plainNames.has(name) ? name : undefined

/** Maps what a choice contains besides the pieces of text. */
function mapRestOfChoice(choice: unknown, map: TextsMap): unknown {
  if (!isObject(choice)) return mapAnswerField({ choice }, 'choice', map)
  const { message, ...others } = choice
  // Before the choice is complete, a match in a message that is repeated so far may be undecided.
  const known = isObject(message) && choice.finish_reason == null ? others : choice
  return mapEntries(known, (name, value) => {
    if (name === 'text' && typeof value === 'string') return value
    if (name === 'delta' && isObject(value)) return mapDelta(value, { ...keepPieces, whole: map })
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
function mapPieces(choice: unknown, map: DeltaMap): unknown {
  if (!isObject(choice)) return choice
  return mapEntries(choice, (name, value) => {
    if (name === 'text' && typeof value === 'string' && value !== '') return map.piece(value, name)
    return name === 'delta' && isObject(value) ? mapDelta(value, map) : value
  })
}

/** Returns the fields of a choice that continue the text in `field`. */
function choiceText(field: string, text: string): JsonObject {
  if (field === 'text') return { text }
  return { delta: field === 'transcript' ? { audio: { transcript: text } } : { [field]: text } }
}

/** Returns the pieces of text in a choice. */
function piecesOf(choice: JsonObject, at: number, event: JsonObject, name?: string): Piece[] {
  const index = numberAt(choice, 'index') ?? 0
  const pieces: Piece[] = []
  mapPieces(choice, {
    piece: (text, field) => {
      const run = `${index}/${field}`
      const more = (rest: string) => {
        const only = { index, ...choiceText(field, rest), logprobs: null, finish_reason: null }
        return eventOf(name, { ...labelsOf(event), choices: [only] })
      }
      pieces.push({ run, part: run, text, more })
      return text
    },
    aside: (text, path) => {
      pieces.push(asideOf(event, name, `${index}/`, ['choices', at, ...path], text))
      return text
    },
    whole: keepPieces.whole,
  })
  return pieces
}

/** Reads an event. A finish reason completes a choice. */
const readCompletionsEvent: ReadEvent = (event, name) => {
  const choices = listAt(event, 'choices')
  const pieces = choices.flatMap((choice, at) =>
    isObject(choice) ? piecesOf(choice, at, event, name) : [],
  )
  const ended = choices
    .filter((choice) => isObject(choice) && choice.finish_reason != null)
    .map((choice) => `${numberAt(choice, 'index') ?? 0}/`)
  const completes = event.error == null ? ended : everything
  const put = (texts: readonly string[], written: JsonObject) => {
    let at = 0
    const next = () => texts[at++] ?? ''
    const map = { piece: next, aside: next, whole: keepPieces.whole }
    return mapChoices(written, (choice) => mapPieces(choice, map))
  }
  const repeat = (map: TextsMap) => {
    const mapped = mapChoices(event, (choice) => mapRestOfChoice(choice, map))
    return mapRestOfEvent(mapped, map, Array.isArray(event.choices) ? 'choices' : '')
  }
  return { pieces, put, completes, repeat }
}

const readMessagesEvent: ReadEvent = (event, name) => {
  const { type } = event
  const repeatAll = (map: TextsMap) => mapBlock(event, map)
  switch (type) {
    case 'message_start': {
      const message = objectAt(event, 'message')
      if (message === undefined) return { repeat: repeatAll }
      return {
        repeat: (map) =>
          withFields(mapRestOfEvent(event, map, 'message'), {
            message: mapAnswerTexts(message, 'Messages', map),
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
      const texts = isDelta(event) ? readDelta(event, name, '0/') : { repeat: repeatAll }
      return { ...texts, ...(isLast && { completes: everything }) }
    }
    case 'message_stop':
    case 'error':
      return { repeat: repeatAll, completes: everything }
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
      found.includes(field) || block === undefined || !isBlock
        ? value
        : mapAnswerField(block, field, map)
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
  if (isBlock) return found.length > 0 ? { ...base, begins: `${index}/` } : base
  return withAsides(base, event, name, `${index}/`, (one, map) => {
    const delta = objectAt(one, key)
    return delta === undefined
      ? one
      : withFields(one, { [key]: mapAsidesOf(delta, key, [key], map, found) })
  })
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
    if (!isEnd && isDelta(event) && objectAt(event, 'response') === undefined) {
      return readDelta(event, name, part)
    }
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
