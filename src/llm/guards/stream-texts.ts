/** Where the texts of a streamed answer stand in its events, in the client's format. */
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
import { mapAnswerTexts, putText, type TextMap, textOfPart } from './texts.ts'

/** Where a piece of text stands in an event. */
export interface Piece {
  /** Identity of the text that it belongs to. */
  readonly key: string
  readonly text: string
  /** The event with another text in this place. */
  put(text: string): JsonObject
}

/** What an event means for the texts of the answer. */
export interface Reading {
  readonly pieces: readonly Piece[]
  /** Texts that end with this event, by the beginnings of their keys. */
  readonly ends: readonly string[]
  /** The event with its whole texts masked; for events that repeat what was streamed. */
  readonly repeat?: (map: TextMap) => JsonObject
}

export type ReadEvent = (event: JsonObject) => Reading

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

const nothing: Reading = { pieces: [], ends: [] }

/** Refusals and contents of choices; a choice ends with its finish reason. */
const readCompletionsEvent: ReadEvent = (event) => {
  const pieces: Piece[] = []
  const ends: string[] = []
  for (const [at, choice] of listAt(event, 'choices').entries()) {
    const index = numberAt(choice, 'index') ?? 0
    const delta = objectAt(choice, 'delta')
    for (const name of ['content', 'refusal']) {
      const text = stringAt(delta, name)
      if (text === undefined || text === '') continue
      const put = (replaced: string) => putChoice(event, at, { ...delta, [name]: replaced })
      pieces.push({ key: `${index}/${name}`, text, put })
    }
    for (const [place, part] of listAt(delta, 'content').entries()) {
      const text = textOfPart(part) ?? ''
      if (text === '') continue
      const put = (replaced: string) => {
        const content = listAt(delta, 'content').with(place, putText(part, replaced))
        return putChoice(event, at, { ...delta, content })
      }
      pieces.push({ key: `${index}/content/${place}`, text, put })
    }
    if (isObject(choice) && choice.finish_reason != null) ends.push(`${index}/`)
  }
  return { pieces, ends }
}

function putChoice(event: JsonObject, at: number, delta: JsonObject): JsonObject {
  const choices = listAt(event, 'choices').map((choice, position) =>
    position === at && isObject(choice) ? { ...choice, delta } : choice,
  )
  return { ...event, choices }
}

const readMessagesEvent: ReadEvent = (event) => {
  const index = numberAt(event, 'index') ?? 0
  const key = `${index}/`
  if (event.type === 'message_start') {
    const message = objectAt(event, 'message') ?? {}
    const repeat = (map: TextMap) => ({
      ...event,
      message: mapAnswerTexts(message, 'Messages', map),
    })
    return listAt(message, 'content').length === 0 ? nothing : { pieces: [], ends: [], repeat }
  }
  if (event.type === 'content_block_stop') return { pieces: [], ends: [key] }
  if (event.type === 'content_block_start') {
    // Empty as a rule; a text that is there belongs to what follows.
    const block = objectAt(event, 'content_block')
    const text = stringAt(block, 'text') ?? ''
    if (stringAt(block, 'type') !== 'text' || text === '') return nothing
    const put = (replaced: string) => ({ ...event, content_block: { ...block, text: replaced } })
    return { pieces: [{ key, text, put }], ends: [] }
  }
  if (event.type !== 'content_block_delta') return nothing
  const delta = objectAt(event, 'delta')
  const text = stringAt(delta, 'text')
  if (stringAt(delta, 'type') !== 'text_delta' || text === undefined) return nothing
  const put = (replaced: string) => ({ ...event, delta: { ...delta, text: replaced } })
  return { pieces: [{ key, text, put }], ends: [] }
}

const responsesKey = (event: JsonObject): string =>
  `${numberAt(event, 'output_index') ?? 0}/${numberAt(event, 'content_index') ?? 0}/`

const readResponsesEvent: ReadEvent = (event) => {
  switch (event.type) {
    case 'response.output_text.delta':
    case 'response.refusal.delta': {
      const text = stringAt(event, 'delta')
      if (text === undefined) return nothing
      const put = (delta: string) => ({ ...event, delta })
      return { pieces: [{ key: responsesKey(event), text, put }], ends: [] }
    }
    case 'response.output_text.done':
    case 'response.refusal.done': {
      const name = event.type === 'response.output_text.done' ? 'text' : 'refusal'
      const whole = stringAt(event, name) ?? ''
      const repeat = (map: TextMap) => ({ ...event, [name]: map(whole) })
      return { pieces: [], ends: [responsesKey(event)], repeat }
    }
    case 'response.content_part.added':
    case 'response.content_part.done':
      return { pieces: [], ends: [], repeat: (map) => mapPart(event, 'part', map) }
    case 'response.output_item.added':
    case 'response.output_item.done':
      return { pieces: [], ends: [], repeat: (map) => mapPart(event, 'item', map) }
    case 'response.completed':
    case 'response.incomplete':
    case 'response.failed': {
      const response = objectAt(event, 'response') ?? {}
      const repeat = (map: TextMap) => ({
        ...event,
        response: mapAnswerTexts(response, 'Responses', map),
      })
      return { pieces: [], ends: [''], repeat }
    }
    default:
      return nothing
  }
}

/** An item or a part, mapped as the one item of an answer. */
function mapPart(event: JsonObject, name: 'item' | 'part', map: TextMap): JsonObject {
  const value = event[name]
  const item = name === 'item' ? value : { content: [value] }
  const [mapped] = listAt(mapAnswerTexts({ output: [item] }, 'Responses', map), 'output')
  const found = name === 'item' ? mapped : listAt(mapped, 'content')[0]
  return { ...event, [name]: found }
}

export const eventReaders: Readonly<Record<ChatFormat, ReadEvent>> = {
  Completions: readCompletionsEvent,
  Messages: readMessagesEvent,
  Responses: readResponsesEvent,
}
