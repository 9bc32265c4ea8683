/**
 * Masks in streamed answers, in the client's format. What comes out in all is what masking the whole
 * answer gives, however the provider cut it into events, blocks and parts. The order of events is kept:
 * where the end of a part is undecided, the events behind it wait until it is not.
 */
import { Fifo } from '../../../base/fifo.ts'
import { PathMap } from '../../../base/path-map.ts'
import type { Mask } from '../../../core/index.ts'
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import { type JsonObject, numberAt, parseJson, stringAt } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import { maskThrough } from './parts-masker.ts'
import { mapRepeatedTexts } from './repeated-texts.ts'
import { RunningText, type TextPart } from './running-text.ts'
import {
  answer,
  eventReaders,
  type Piece,
  type ReadEvent,
  type Reading,
  readGuarded,
} from './stream-texts.ts'
import type { TextsMap } from './texts.ts'

/** An event that waits for its turn. */
interface WaitingEvent {
  readonly event: StreamEvent
  readonly parsed: JsonObject | undefined
  readonly reading: Reading | undefined
  /** The part of each piece. */
  readonly parts: readonly TextPart[]
  readonly begins: TextPart | undefined
  /** Parts that end with this event. */
  readonly ends: readonly TextPart[]
  /** Parts of texts that are complete with this event. */
  readonly completed: readonly TextPart[]
}

export class StreamMasker {
  readonly #masks: readonly Mask[]
  readonly #format: ChatFormat
  readonly #read: ReadEvent
  readonly #maxHeld: number
  readonly #texts = new PathMap<RunningText>()
  readonly #waiting = new Fifo<WaitingEvent>()
  /** Characters of the events that wait. */
  #waitingSize = 0
  /** Parts that have ended, as they came and as they are masked; events repeat them. */
  readonly #repeated = new Map<string, string>()
  #repeatedSize = 0
  /** Events that were added so far. */
  #added = 0
  /** Positions of blocks that were left without a text, and were taken out; they rise. */
  readonly #dropped: number[] = []
  /** Something was masked. */
  hasMasked = false

  /** `masks` in their order. `maxHeld`: bytes that may be held back for want of a decision. */
  constructor(masks: readonly Mask[], format: ChatFormat, maxHeld: number) {
    this.#masks = masks
    this.#format = format
    this.#read = eventReaders[format]
    this.#maxHeld = maxHeld
  }

  /** @throws LlmError 502 where more would have to be held back than is allowed, or nobody can read it. */
  push(given: StreamEvent): StreamEvent[] {
    const whole = readGuarded(given.data)
    const parsed = whole && mapRepeatedTexts(whole, this.#mask)
    const event = parsed === whole ? given : { ...given, data: JSON.stringify(parsed) }
    if (parsed === undefined) {
      const completed = this.#complete([''])
      this.#wait({
        event,
        parsed,
        reading: undefined,
        parts: [],
        begins: undefined,
        ends: [],
        completed,
      })
      return this.#release()
    }
    const reading = this.#read(parsed, event.event)
    const { begins, completes = [] } = reading
    const parts = reading.pieces.map((piece) => this.#take(piece))
    const ends =
      reading.ends === undefined ? [] : (this.#texts.get(answer)?.endParts(reading.ends) ?? [])
    const completed = this.#complete(completes)
    const first = begins === undefined ? undefined : parts[0]
    this.#wait({ event, parsed, reading, parts, begins: first, ends, completed })
    return this.#release()
  }

  /** What is still held back, when no more events come. */
  finish(): StreamEvent[] {
    const ends = this.#complete([''])
    const released = this.#release()
    return [...released, ...ends.flatMap((part) => this.#restOf(part))]
  }

  /** Gives the core its memory back. Idempotent. */
  dispose(): void {
    for (const text of this.#texts.takeAll('')) text.dispose()
  }

  #take(piece: Piece): TextPart {
    let text = this.#texts.get(piece.run)
    if (text === undefined) {
      const hasParts = this.#format !== 'Completions'
      text = new RunningText(this.#masks, hasParts, this.#format === 'Responses')
      this.#texts.set(piece.run, text)
    }
    const part = text.push(piece)
    if (text.heldBytes > this.#maxHeld) throw undecided()
    return part
  }

  /** Ends texts; answers their parts. */
  #complete(starts: readonly string[]): TextPart[] {
    const parts: TextPart[] = []
    for (const text of starts.flatMap((start) => this.#texts.takeAll(start))) {
      parts.push(...text.complete())
      this.hasMasked ||= text.count > 0
      text.dispose()
    }
    return parts
  }

  #wait(waiting: WaitingEvent): void {
    this.#waiting.push(waiting)
    this.#waitingSize += waiting.event.data.length
  }

  /** The events that nothing undecided stands before. */
  #release(): StreamEvent[] {
    const released: StreamEvent[] = []
    for (let next = this.#waiting.first; next !== undefined; next = this.#waiting.first) {
      const { begins, ends } = next
      const isUndecided = begins !== undefined && begins.ready === '' && !begins.isDone
      if (isUndecided || ends.some(({ isDone }) => !isDone)) break
      this.#waiting.take()
      this.#waitingSize -= next.event.data.length
      released.push(...this.#write(next))
    }
    if (this.#waitingSize > this.#maxHeld) throw undecided()
    return released
  }

  #write(waiting: WaitingEvent): StreamEvent[] {
    const { event, parsed, reading, parts, begins, ends, completed } = waiting
    const complete = [...ends, ...completed]
    const own = new Set(complete.length === 0 ? [] : parts)
    const rest = complete.filter((part) => !own.has(part)).flatMap((part) => this.#restOf(part))
    if (parsed === undefined || reading === undefined) return [...rest, event]
    if (begins !== undefined && isEmptied(begins) && this.#format === 'Messages') {
      const index = numberAt(parsed, 'index') ?? 0
      this.#dropped.splice(this.#droppedBefore(index), 0, index)
    }
    for (const part of complete) this.#remember(part)
    if (this.#isDropped(parsed)) return rest
    let changed = this.#placed(parsed)
    if (reading.repeat !== undefined) {
      const repeated = reading.repeat(reading.isWhole === true ? this.#mask : this.#repeat)
      changed = repeated === parsed ? changed : this.#placed(repeated)
    }
    // A block begins empty: its text follows.
    const texts = parts.map((part) => (part === begins ? '' : part.takeReady()))
    if (reading.pieces.some(({ text }, at) => texts[at] !== text)) {
      changed = this.#placed(reading.put(texts))
    }
    const written = changed === parsed ? event : { ...event, data: JSON.stringify(changed) }
    return this.#numbered([...rest, written], parsed)
  }

  /** What of a part has not found a place in its events. */
  #restOf(part: TextPart): StreamEvent[] {
    const rest = part.takeReady()
    if (rest === '' || part.last === undefined) return []
    const { event, data } = part.last.more(rest)
    if (this.#dropped.length === 0) return [{ event, data }]
    return [{ event, data: JSON.stringify(this.#placed(parseJson(data) as JsonObject)) }]
  }

  /** Is the event one of a block that the client does not see? */
  #isDropped(parsed: JsonObject): boolean {
    if (this.#dropped.length === 0) return false
    const isOfBlock = stringAt(parsed, 'type')?.startsWith('content_block_') === true
    const index = numberAt(parsed, 'index') ?? 0
    return isOfBlock && this.#dropped[this.#droppedBefore(index)] === index
  }

  /** The event with the position that its block has for the client. */
  #placed(parsed: JsonObject): JsonObject {
    const index = numberAt(parsed, 'index')
    if (index === undefined || this.#dropped.length === 0) return parsed
    const before = this.#droppedBefore(index)
    return before === 0 ? parsed : { ...parsed, index: index - before }
  }

  #droppedBefore(index: number): number {
    let low = 0
    for (let high = this.#dropped.length; low < high; ) {
      const middle = (low + high) >> 1
      if ((this.#dropped[middle] ?? 0) < index) low = middle + 1
      else high = middle
    }
    return low
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

  #remember({ original, masked }: TextPart): void {
    if (this.#format !== 'Responses') return
    if (!this.#repeated.has(original)) this.#repeatedSize += original.length + masked.length
    this.#repeated.set(original, masked)
    for (const [oldest, text] of this.#repeated) {
      if (this.#repeatedSize <= this.#maxHeld * 2) break
      this.#repeated.delete(oldest)
      this.#repeatedSize -= oldest.length + text.length
    }
  }

  /** Texts that were streamed are repeated as they were masked then; others are masked by themselves. */
  readonly #repeat: TextsMap = (texts) => {
    const known = texts.flatMap((text) => this.#repeated.get(text) ?? [])
    return known.length === texts.length ? known : this.#mask(texts)
  }

  readonly #mask: TextsMap = (texts) => {
    const { texts: masked, count } = maskThrough(this.#masks, texts)
    this.hasMasked ||= count > 0
    return masked
  }
}

const isEmptied = ({ hasText, hasMaskedText, isDone }: TextPart): boolean =>
  isDone && hasText && !hasMaskedText

const undecided = () =>
  new LlmError(502, 'a pattern of a response guard stays undecided for too long')
