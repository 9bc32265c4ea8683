/** Where the texts of a streamed answer stand in its events, in the client's format. */
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import {
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
} from '../json.ts'
import { LlmError } from '../llm-error.ts'
import { mapAnswerTexts, mapNested, putText, type TextsMap, textOfPart } from './texts.ts'

/** A piece of text in an event. */
export interface Piece {
  /** The text that the piece belongs to: all texts of a message or choice are one. */
  readonly run: string
  /** The part of that text: a block, or a part of a content. */
  readonly part: string
  readonly text: string
  /** An event that continues the part, and says nothing else. */
  more(text: string): StreamEvent
}

/** What an event means for the texts of the answer. */
export interface Reading {
  readonly pieces: readonly Piece[]
  /** The event with other texts, as many as there are pieces. */
  put(texts: readonly string[]): JsonObject
  /** The part that begins with this event, where it is not to be seen before it has a text. */
  readonly begins?: string
  /** Parts that end with this event, by the beginnings of their names. */
  readonly ends?: string
  /** Texts that are complete with this event, by the beginnings of their names. */
  readonly completes?: readonly string[]
  /** The event with its whole texts changed; for events that repeat what was streamed. */
  readonly repeat?: (map: TextsMap) => JsonObject
  /** It repeats the whole answer. */
  readonly isWhole?: boolean
}

/** `name`: of the event. */
export type ReadEvent = (event: JsonObject, name: string | undefined) => Reading

/**
 * An event of an answer that is guarded; undefined where it says nothing. What nobody can read might
 * hold anything, so it does not pass. @throws LlmError 502
 */
export function readGuarded(data: string): JsonObject | undefined {
  const parsed = parseJson(data)
  if (isObject(parsed)) return parsed
  if (data === '[DONE]' || data.trim() === '') return undefined
  throw new LlmError(502, 'an event of the answer is not JSON')
}

/** All texts of the answer. */
const everything = ['']

function reading(event: JsonObject, more: Partial<Reading> = {}): Reading {
  return { pieces: [], put: () => event, ...more }
}

const withField = (event: JsonObject, name: string, value: unknown): JsonObject =>
  event[name] === value ? event : { ...event, [name]: value }

const eventOf = (name: string | undefined, body: JsonObject): StreamEvent => ({
  event: name,
  data: JSON.stringify(body),
})

/** Texts of a delta by the field that holds them; refusals and transcripts are texts of their own. */
function mapDelta(delta: JsonObject, map: (text: string, field: string) => string): JsonObject {
  const changed: Record<string, unknown> = { ...delta }
  for (const name of ['content', 'refusal']) {
    const text = stringAt(delta, name)
    if (text !== undefined && text !== '') changed[name] = map(text, name)
  }
  const audio = objectAt(delta, 'audio')
  const transcript = stringAt(audio, 'transcript') ?? ''
  if (transcript !== '') changed.audio = { ...audio, transcript: map(transcript, 'transcript') }
  const parts = listAt(delta, 'content')
  if (parts.length > 0) {
    changed.content = parts.map((part) => {
      const text = textOfPart(part) ?? ''
      return text === '' ? part : putText(part, map(text, 'content'))
    })
  }
  return changed
}

/** The fields of a choice that continue one of its texts. */
function choiceText(field: string, text: string): JsonObject {
  if (field === 'text') return { text }
  return { delta: field === 'transcript' ? { audio: { transcript: text } } : { [field]: text } }
}

/** Texts of choices, of which some vendors send one without a delta; a finish reason ends a choice. */
const readCompletionsEvent: ReadEvent = (event, name) => {
  const pieces: Piece[] = []
  const choices = listAt(event, 'choices')
  const mapChoices = (map: (text: string, field: string, choice: JsonObject) => string) => ({
    ...event,
    choices: choices.map((choice) => {
      if (!isObject(choice)) return choice
      const delta = objectAt(choice, 'delta')
      const text = stringAt(choice, 'text') ?? ''
      return {
        ...choice,
        ...(text !== '' && { text: map(text, 'text', choice) }),
        ...(delta && { delta: mapDelta(delta, (piece, field) => map(piece, field, choice)) }),
      }
    }),
  })
  mapChoices((text, field, choice) => {
    const index = numberAt(choice, 'index') ?? 0
    const run = `${index}/${field}`
    const more = (rest: string) => {
      const { usage: _usage, ...head } = event
      const only = { index, ...choiceText(field, rest), logprobs: null, finish_reason: null }
      return eventOf(name, { ...head, choices: [only] })
    }
    pieces.push({ run, part: run, text, more })
    return text
  })
  const ended = choices
    .filter((choice) => isObject(choice) && choice.finish_reason != null)
    .map((choice) => `${numberAt(choice, 'index') ?? 0}/`)
  const completes = event.error == null ? ended : everything
  const put = (texts: readonly string[]) => {
    let at = 0
    return mapChoices(() => texts[at++] ?? '')
  }
  return { pieces, put, completes }
}

/** The one text of formats whose texts have parts that end. */
export const answer = 'answer'

const readMessagesEvent: ReadEvent = (event, name) => {
  const index = numberAt(event, 'index') ?? 0
  const part = `${index}/`
  const more = (text: string) => {
    const type = 'content_block_delta'
    const delta = { type: 'text_delta', text }
    return eventOf(name === undefined ? undefined : type, { type, index, delta })
  }
  const one = (text: string, put: (text: string) => JsonObject): Reading => ({
    pieces: [{ run: answer, part, text, more }],
    put: ([replaced = '']) => put(replaced),
  })
  switch (event.type) {
    case 'message_start': {
      const message = objectAt(event, 'message') ?? {}
      const repeat = (map: TextsMap) =>
        withField(event, 'message', mapAnswerTexts(message, 'Messages', map))
      return reading(event, listAt(message, 'content').length === 0 ? {} : { repeat })
    }
    case 'content_block_start': {
      const block = objectAt(event, 'content_block')
      if (stringAt(block, 'type') !== 'text') {
        return reading(event, {
          repeat: (map) => withField(event, 'content_block', mapNested(block, map)),
        })
      }
      // Empty as a rule; a text that is there belongs to what follows.
      const text = stringAt(block, 'text') ?? ''
      const put = (replaced: string) => ({ ...event, content_block: { ...block, text: replaced } })
      return { ...one(text, put), begins: part }
    }
    case 'content_block_delta': {
      const delta = objectAt(event, 'delta')
      const text = stringAt(delta, 'text')
      if (stringAt(delta, 'type') !== 'text_delta' || text === undefined) {
        return reading(event, {
          repeat: (map) => withField(event, 'delta', mapNested(delta, map)),
        })
      }
      return one(text, (replaced) => ({ ...event, delta: { ...delta, text: replaced } }))
    }
    case 'content_block_stop':
      return reading(event, { ends: part })
    case 'message_delta': {
      const isLast = objectAt(event, 'delta')?.stop_reason != null
      return reading(event, isLast ? { completes: everything } : {})
    }
    case 'message_stop':
    case 'error':
      return reading(event, { completes: everything })
    default:
      return reading(event)
  }
}

const readResponsesEvent: ReadEvent = (event, name) => {
  const output = `${numberAt(event, 'output_index') ?? 0}/`
  const part = `${output}${numberAt(event, 'content_index') ?? 0}/`
  switch (event.type) {
    case 'response.output_text.delta':
    case 'response.audio.transcript.delta':
    case 'response.refusal.delta': {
      const text = stringAt(event, 'delta')
      if (text === undefined) return reading(event)
      const put = (delta: string) => ({ ...event, delta })
      const more = (rest: string) => eventOf(name, put(rest))
      return {
        pieces: [{ run: answer, part, text, more }],
        put: ([replaced = '']) => put(replaced),
      }
    }
    case 'response.output_text.done':
      return readDone(event, 'text', part)
    case 'response.audio.transcript.done':
      return readDone(event, 'transcript', part)
    case 'response.refusal.done':
      return readDone(event, 'refusal', part)
    case 'response.content_part.added':
      return reading(event, { repeat: (map) => mapPart(event, 'part', map) })
    case 'response.content_part.done':
      return reading(event, { ends: part, repeat: (map) => mapPart(event, 'part', map) })
    case 'response.output_item.added':
      return reading(event, { repeat: (map) => mapPart(event, 'item', map) })
    case 'response.output_item.done':
      return reading(event, { ends: output, repeat: (map) => mapPart(event, 'item', map) })
    case 'error':
      return reading(event, { completes: everything })
    default:
      return readWhole(event)
  }
}

/** The end of a part, with the whole text of it. */
function readDone(event: JsonObject, name: string, part: string): Reading {
  const whole = stringAt(event, name)
  if (whole === undefined) return reading(event, { ends: part })
  const repeat = (map: TextsMap) => withField(event, name, map([whole])[0] ?? '')
  return reading(event, { ends: part, repeat })
}

const last = new Set<unknown>(['response.completed', 'response.incomplete', 'response.failed'])

/** Events that carry the response as a whole. */
function readWhole(event: JsonObject): Reading {
  const response = objectAt(event, 'response')
  if (response === undefined) return reading(event)
  const repeat = (map: TextsMap) =>
    withField(event, 'response', mapAnswerTexts(response, 'Responses', map))
  return reading(event, {
    repeat,
    isWhole: true,
    ...(last.has(event.type) && { completes: everything }),
  })
}

/** An item or a part, mapped as the one item of an answer. */
function mapPart(event: JsonObject, name: 'item' | 'part', map: TextsMap): JsonObject {
  const value = event[name]
  const item = name === 'item' ? value : { content: [value] }
  const [mapped] = listAt(mapAnswerTexts({ output: [item] }, 'Responses', map), 'output')
  const found = name === 'item' ? mapped : listAt(mapped, 'content')[0]
  return withField(event, name, found)
}

export const eventReaders: Readonly<Record<ChatFormat, ReadEvent>> = {
  Completions: readCompletionsEvent,
  Messages: readMessagesEvent,
  Responses: readResponsesEvent,
}
