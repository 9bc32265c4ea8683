/**
 * Masks in streamed answers, in the client's format. Each text of the answer runs through streams of
 * the core, which give out what is settled: what comes out in all is what masking the whole text
 * gives, however the provider cut it. The order of events is kept. What is still held back when a
 * text ends is told in an event of its own, made like the last one of that text.
 */
import type { Mask, MaskStream } from '../../core/index.ts'
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import { type JsonObject, numberAt, parseJson } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import { eventReaders, type Piece, type ReadEvent, readGuarded } from './stream-texts.ts'

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
    this.#read = eventReaders[format]
    this.#maxHeld = maxHeld
  }

  /** @throws LlmError 502 where more would have to be held back than is allowed, or nobody can read it. */
  push({ event, data }: StreamEvent): StreamEvent[] {
    const parsed = readGuarded(data)
    if (parsed === undefined) return [...this.finish(), { event, data }]
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
      const told = this.#alone(running.last.put(rest), key)
      events.push({ event: running.event, data: JSON.stringify(told) })
    }
    return events
  }

  /** What other texts of the event said has been told, masked, when the event came. */
  #alone(event: JsonObject, key: string): JsonObject {
    return this.#read(event)
      .pieces.filter((piece) => piece.key !== key)
      .reduce((changed, piece) => this.#merge(changed, piece, ''), event)
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
