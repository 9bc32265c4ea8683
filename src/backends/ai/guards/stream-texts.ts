/** Finds the texts in the events of a streamed answer, in the client's format. */
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
  withFields,
} from '../json.ts'
import { LlmError } from '../llm-error.ts'
import { mapErrorAnswer } from './error-texts.ts'
import { needEventForm } from './message-forms.ts'
import { mapAnswerTexts, mapNested, putText, type TextsMap, textOfPart } from './texts.ts'

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
  /** Returns the event with other texts, one for each piece. */
  readonly put?: (texts: readonly string[]) => JsonObject
  /** Name of the part that begins with this event, which is held until the part has a text. */
  readonly begins?: string
  /** Prefix of the names of the parts that end with this event. */
  readonly ends?: string
  /** Prefixes of the names of the texts that are complete with this event. */
  readonly completes?: readonly string[]
  /** Maps the texts that the event repeats after they were streamed. */
  readonly repeat?: (map: TextsMap) => JsonObject
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

/** Maps the texts of a delta together with their fields; refusals and transcripts are separate texts. */
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

/** Returns the fields of a choice that continue the text in `field`. */
function choiceText(field: string, text: string): JsonObject {
  if (field === 'text') return { text }
  return { delta: field === 'transcript' ? { audio: { transcript: text } } : { [field]: text } }
}

/** Reads an event. Some vendors send `text` instead of a delta. A finish reason completes a choice. */
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

/** The name of the only text in formats whose events show where parts end. */
export const answer = 'answer'

const readMessagesEvent: ReadEvent = (event, name) => {
  const index = numberAt(event, 'index') ?? 0
  const part = `${index}/`
  const more = (text: string) => {
    const type = 'content_block_delta'
    const delta = { type: 'text_delta', text }
    return eventOf(name === undefined ? undefined : type, { type, index, delta })
  }
  const one = (text: string, put: (text: string) => JsonObject): EventTexts => ({
    pieces: [{ run: answer, part, text, more }],
    put: ([replaced = '']) => put(replaced),
  })
  switch (event.type) {
    case 'message_start': {
      const message = objectAt(event, 'message') ?? {}
      const repeat = (map: TextsMap) =>
        withFields(event, { message: mapAnswerTexts(message, 'Messages', map) })
      return listAt(message, 'content').length === 0 ? {} : { repeat }
    }
    case 'content_block_start': {
      const block = objectAt(event, 'content_block')
      if (stringAt(block, 'type') !== 'text') {
        return {
          repeat: (map) => withFields(event, { content_block: mapNested(block, map) }),
        }
      }
      // The text is usually empty; otherwise the client gets it in the deltas that follow.
      const text = stringAt(block, 'text') ?? ''
      const put = (replaced: string) => ({ ...event, content_block: { ...block, text: replaced } })
      return { ...one(text, put), begins: part }
    }
    case 'content_block_delta': {
      const delta = objectAt(event, 'delta')
      const text = stringAt(delta, 'text')
      if (stringAt(delta, 'type') !== 'text_delta' || text === undefined) {
        return {
          repeat: (map) => withFields(event, { delta: mapNested(delta, map) }),
        }
      }
      return one(text, (replaced) => ({ ...event, delta: { ...delta, text: replaced } }))
    }
    case 'content_block_stop':
      return { ends: part }
    case 'message_delta': {
      const isLast = objectAt(event, 'delta')?.stop_reason != null
      return isLast ? { completes: everything } : {}
    }
    case 'message_stop':
    case 'error':
      return { completes: everything }
    default:
      return {}
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
      if (text === undefined) return {}
      const put = (delta: string) => ({ ...event, delta })
      const more = (rest: string) => eventOf(name, put(rest))
      return {
        pieces: [{ run: answer, part, text, more }],
        put: ([replaced = '']) => put(replaced),
      }
    }
    case 'response.output_text.done':
      return readPartEnd(event, 'text', part)
    case 'response.audio.transcript.done':
      return readPartEnd(event, 'transcript', part)
    case 'response.refusal.done':
      return readPartEnd(event, 'refusal', part)
    case 'response.content_part.added':
      return { repeat: (map) => mapPart(event, 'part', map) }
    case 'response.content_part.done':
      return { ends: part, repeat: (map) => mapPart(event, 'part', map) }
    case 'response.output_item.added':
      return { repeat: (map) => mapPart(event, 'item', map) }
    case 'response.output_item.done':
      return { ends: output, repeat: (map) => mapPart(event, 'item', map) }
    case 'error':
      return { completes: everything }
    default:
      return readWhole(event)
  }
}

/** Reads the end of a part, which repeats the part's whole text. */
function readPartEnd(event: JsonObject, name: string, part: string): EventTexts {
  const whole = stringAt(event, name)
  if (whole === undefined) return { ends: part }
  const repeat = (map: TextsMap) => withFields(event, { [name]: map([whole])[0] ?? '' })
  return { ends: part, repeat }
}

const lastTypes = new Set<unknown>(['response.completed', 'response.incomplete', 'response.failed'])

/** Reads an event that contains the whole response. */
function readWhole(event: JsonObject): EventTexts {
  const response = objectAt(event, 'response')
  if (response === undefined) return {}
  const repeat = (map: TextsMap) =>
    withFields(event, { response: mapAnswerTexts(response, 'Responses', map) })
  return {
    repeat,
    isWhole: true,
    ...(lastTypes.has(event.type) && { completes: everything }),
  }
}

/** Maps an item or a part as if it were the only one of an answer. */
function mapPart(event: JsonObject, name: 'item' | 'part', map: TextsMap): JsonObject {
  const value = event[name]
  const item = name === 'item' ? value : { content: [value] }
  const [mapped] = listAt(mapAnswerTexts({ output: [item] }, 'Responses', map), 'output')
  const found = name === 'item' ? mapped : listAt(mapped, 'content')[0]
  return withFields(event, { [name]: found })
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
