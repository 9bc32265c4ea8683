/**
 * Masks in streamed answers, in the client's format. Each text of the answer runs through streams of
 * the core, which give out what is settled: what comes out in all is what masking the whole text
 * gives, however the provider cut it. The order of events is kept. What is still held back when a
 * text ends is told in an event of its own, made like the last one of that text.
 */
import type { Mask, MaskStream } from '../../core/index.ts'
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
import { mapAnswerTexts, type TextMap } from './texts.ts'

/** Where a piece of text stands in an event. */
interface Piece {
  /** Identity of the text that it belongs to. */
  readonly key: string
  readonly text: string
  /** The event with another text in this place. */
  put(text: string): JsonObject
}

/** What an event means for the texts of the answer. */
interface Reading {
  readonly pieces: readonly Piece[]
  /** Texts that end with this event, by the beginnings of their keys. */
  readonly ends: readonly string[]
  /** The event with its whole texts masked; for events that repeat what was streamed. */
  readonly repeat?: (map: TextMap) => JsonObject
}

type ReadEvent = (event: JsonObject) => Reading

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
  if (event.type === 'content_block_stop') return { pieces: [], ends: [key] }
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
    case 'response.content_part.done':
      return { pieces: [], ends: [], repeat: (map) => mapPart(event, 'part', map) }
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

const readers: Readonly<Record<ChatFormat, ReadEvent>> = {
  Completions: readCompletionsEvent,
  Messages: readMessagesEvent,
  Responses: readResponsesEvent,
}

/** A text on its way: a chain of masks, and how its last event looked. */
interface RunningText {
  readonly streams: readonly MaskStream[]
  last: Piece
  readonly event: string | undefined
}

export class StreamMasker {
  readonly #masks: readonly Mask[]
  readonly #read: ReadEvent
  readonly #maxHeld: number
  readonly #texts = new Map<string, RunningText>()
  /** Events that were added so far. */
  #added = 0

  /** `masks` in their order. `maxHeld`: bytes that may be held back for want of a decision. */
  constructor(masks: readonly Mask[], format: ChatFormat, maxHeld: number) {
    this.#masks = masks
    this.#read = readers[format]
    this.#maxHeld = maxHeld
  }

  /** @throws LlmError 502 where more would have to be held back than is allowed. */
  push({ event, data }: StreamEvent): StreamEvent[] {
    const parsed = parseJson(data)
    if (!isObject(parsed)) return [...this.finish(), { event, data }]
    const { pieces, ends, repeat } = this.#read(parsed)
    const before = ends.flatMap((start) => this.#end(start, pieces))
    let changed: JsonObject = parsed
    for (const piece of pieces) {
      const settled = this.#settle(piece, event, ends)
      if (settled !== piece.text) changed = this.#merge(changed, piece, settled)
    }
    if (repeat !== undefined) changed = repeat((text) => this.#mask(text))
    const written = { event, data: changed === parsed ? data : JSON.stringify(changed) }
    return this.#numbered([...before, written], parsed)
  }

  /** Events of the responses format are numbered; those that are added shift all after them. */
  #numbered(events: StreamEvent[], original: JsonObject): StreamEvent[] {
    const number = numberAt(original, 'sequence_number')
    if (number === undefined || (this.#added === 0 && events.length === 1)) return events
    const first = number + this.#added
    this.#added += events.length - 1
    return events.map(({ event, data }, at) => {
      const fields = { ...(parseJson(data) as JsonObject), sequence_number: first + at }
      return { event, data: JSON.stringify(fields) }
    })
  }

  /** What is still held back, when no more events come. */
  finish(): StreamEvent[] {
    return this.#end('', [])
  }

  /** Gives the core its memory back. Idempotent. */
  dispose(): void {
    for (const { streams } of this.#texts.values()) for (const stream of streams) stream.dispose()
    this.#texts.clear()
  }

  #mask(text: string): string {
    return this.#masks.reduce((current, mask) => mask.apply(current).text, text)
  }

  /** Later pieces of one event see the changes of earlier ones. */
  #merge(changed: JsonObject, piece: Piece, text: string): JsonObject {
    const [again] = this.#read(changed).pieces.filter(({ key }) => key === piece.key)
    return (again ?? piece).put(text)
  }

  /** The settled part of a piece, with all the rest where its text ends in the same event. */
  #settle(piece: Piece, event: string | undefined, ends: readonly string[]): string {
    let running = this.#texts.get(piece.key)
    if (running === undefined) {
      running = { streams: this.#masks.map((mask) => mask.stream()), last: piece, event }
      this.#texts.set(piece.key, running)
    }
    running.last = piece
    const isLast = ends.some((start) => piece.key.startsWith(start))
    const settled = isLast
      ? endOf(running.streams, piece.text)
      : pushTo(running.streams, piece.text)
    if (isLast) this.#forget(piece.key, running)
    else if (running.streams.some((stream) => stream.heldBytes > this.#maxHeld)) {
      throw new LlmError(502, 'a pattern of a response guard stays undecided for too long')
    }
    return settled
  }

  /** Tells what is held back of texts that end, but for those whose last piece comes now. */
  #end(start: string, pieces: readonly Piece[]): StreamEvent[] {
    const events: StreamEvent[] = []
    for (const [key, running] of [...this.#texts]) {
      if (!key.startsWith(start) || pieces.some((piece) => piece.key === key)) continue
      const rest = endOf(running.streams, '')
      this.#forget(key, running)
      if (rest === '') continue
      events.push({ event: running.event, data: JSON.stringify(running.last.put(rest)) })
    }
    return events
  }

  #forget(key: string, { streams }: RunningText): void {
    for (const stream of streams) stream.dispose()
    this.#texts.delete(key)
  }
}

const pushTo = (streams: readonly MaskStream[], text: string): string =>
  streams.reduce((current, stream) => stream.push(current), text)

const endOf = (streams: readonly MaskStream[], text: string): string =>
  streams.reduce((current, stream) => stream.end(current), text)
