/**
 * Masks streamed answers in the client's format. The result is the same as for the whole answer,
 * however the provider cut it into events, blocks and parts. Events keep their order: if the end of
 * a part is undecided, the events after it wait.
 */

import { Fifo } from '../../../ground/base/fifo.ts'
import { PathMap } from '../../../ground/base/path-map.ts'
import type { Mask } from '../../core/index.ts'
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../format.ts'
import { type JsonObject, numberAt, parseJson, stringAt } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import { mapErrorsBeside } from './error-texts.ts'
import { answer, asidesPrefix, type EventTexts, everything, type Piece } from './event-texts.ts'
import type { OnMatch } from './match-counts.ts'
import { maskThrough } from './parts-masker.ts'
import { mapRepeatedTexts } from './repeated-texts.ts'
import { RunningText, type TextPart } from './running-text.ts'
import { nameOfEvent, readGuarded, readGuardedEvent } from './stream-texts.ts'
import type { TextsMap } from './texts.ts'

/** An event that is held until its masked text, or that of an earlier event, is known. */
interface WaitingEvent {
  readonly event: StreamEvent
  readonly parsed: JsonObject | undefined
  readonly content: EventTexts | undefined
  /** The part that each piece of `content` belongs to. */
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
  readonly #maxHeld: number
  readonly #onMatch: OnMatch | undefined
  readonly #texts = new PathMap<RunningText>()
  readonly #waiting = new Fifo<WaitingEvent>()
  /** Number of characters of all waiting events. */
  #waitingSize = 0
  /** Masked texts by their originals, for later events that repeat the text of an ended part. */
  readonly #repeated = new Map<string, string>()
  #repeatedSize = 0
  /** Number of events that were added to the stream. */
  #added = 0
  /** Indexes of removed blocks, whose text became empty, in ascending order. */
  readonly #removedBlocks: number[] = []
  /** True if something was masked. */
  hasMasked = false

  /** `maxHeld` is the maximum number of bytes to hold back while a match is undecided. */
  constructor(masks: readonly Mask[], format: ChatFormat, maxHeld: number, onMatch?: OnMatch) {
    this.#masks = masks
    this.#format = format
    this.#maxHeld = maxHeld
    this.#onMatch = onMatch
  }

  /** @throws LlmError 502 if too much would be held back, or if the event cannot be read. */
  push(given: StreamEvent): StreamEvent[] {
    const whole = readGuarded(given.data)
    const parsed = whole && mapErrorsBeside(mapRepeatedTexts(whole, this.#mask), this.#mask)
    // The event is written again, because other readers may find another value for a repeated key.
    const event =
      parsed === undefined
        ? { event: undefined, data: given.data }
        : { event: nameOfEvent(given.event, parsed), data: JSON.stringify(parsed) }
    const content = parsed && readGuardedEvent(this.#format, parsed, event.event)
    const parts = content?.pieces?.map((piece) => this.#take(piece)) ?? []
    const ended = content?.ends
    const ends = ended === undefined ? [] : (this.#texts.get(answer)?.endParts(ended) ?? [])
    const asides = ended === undefined ? [] : this.#complete([asidesPrefix + ended])
    const completes = content === undefined ? everything : content.completes
    const completed = [...asides, ...this.#complete(completes)]
    const begins = content?.begins === undefined ? undefined : parts[0]
    this.#waiting.push({ event, parsed, content, parts, begins, ends, completed })
    this.#waitingSize += event.data.length
    return this.#release()
  }

  /** Called at the end of the stream; releases everything that is held back. */
  finish(): StreamEvent[] {
    const ends = this.#complete(everything)
    const released = this.#release()
    return [...released, ...ends.flatMap((part) => this.#restOf(part))]
  }

  /** Releases memory of the core. Idempotent. */
  dispose(): void {
    for (const text of this.#texts.takeAll('')) text.dispose()
  }

  #take(piece: Piece): TextPart {
    let text = this.#texts.get(piece.run)
    if (text === undefined) {
      const { hasParts, repeatsTexts } = this.#format.events
      const isMain = hasParts && piece.run === answer
      if (this.#texts.size >= maxTexts) throw tooManyTexts()
      text = new RunningText(this.#masks, isMain, isMain && repeatsTexts, this.#onMatch)
      this.#texts.set(piece.run, text)
    }
    const part = text.push(piece)
    if (text.heldBytes > this.#maxHeld) throw undecided()
    return part
  }

  /** Ends the texts whose names begin with one of the prefixes; returns their parts that had not ended. */
  #complete(prefixes: readonly string[] = []): TextPart[] {
    const parts: TextPart[] = []
    for (const text of prefixes.flatMap((prefix) => this.#texts.takeAll(prefix))) {
      parts.push(...text.complete())
      this.hasMasked ||= text.count > 0
      text.dispose()
    }
    return parts
  }

  /** Releases the events before the first undecided one. */
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
    const { event, parsed, content, parts, begins, ends, completed } = waiting
    const complete = [...ends, ...completed]
    const own = new Set(complete.length === 0 ? [] : parts)
    const rest = complete.filter((part) => !own.has(part)).flatMap((part) => this.#restOf(part))
    if (parsed === undefined || content === undefined) return [...rest, event]
    if (begins !== undefined && isEmptied(begins) && this.#format.events.losesEmptyParts) {
      const index = numberAt(parsed, 'index') ?? 0
      this.#removedBlocks.splice(this.#removedBefore(index), 0, index)
    }
    for (const part of complete) this.#remember(part)
    if (this.#isRemoved(parsed)) return rest
    const repeated = content.repeat(content.isWhole === true ? this.#mask : this.#repeat)
    let changed = this.#placed(repeated)
    // A block begins empty; its text follows in deltas.
    const texts = parts.map((part) => (part === begins ? '' : part.takeReady()))
    if (content.put && content.pieces?.some(({ text }, at) => texts[at] !== text)) {
      changed = this.#placed(content.put(texts, repeated))
    }
    const written = changed === parsed ? event : { ...event, data: JSON.stringify(changed) }
    return this.#numbered([...rest, written], parsed)
  }

  /** Returns an event with the masked text of a part that is left after the part's last event. */
  #restOf(part: TextPart): StreamEvent[] {
    const rest = part.takeReady()
    if (rest === '' || part.last === undefined) return []
    const { event, data } = part.last.more(rest)
    if (this.#removedBlocks.length === 0) return [{ event, data }]
    return [{ event, data: JSON.stringify(this.#placed(parseJson(data) as JsonObject)) }]
  }

  /** Returns true if the event belongs to a removed block. */
  #isRemoved(parsed: JsonObject): boolean {
    if (this.#removedBlocks.length === 0) return false
    const isOfBlock = stringAt(parsed, 'type')?.startsWith('content_block_') === true
    const index = numberAt(parsed, 'index') ?? 0
    return isOfBlock && this.#removedBlocks[this.#removedBefore(index)] === index
  }

  /** Returns the event with the block index for the client, which does not count removed blocks. */
  #placed(parsed: JsonObject): JsonObject {
    const index = numberAt(parsed, 'index')
    if (index === undefined || this.#removedBlocks.length === 0) return parsed
    const before = this.#removedBefore(index)
    return before === 0 ? parsed : { ...parsed, index: index - before }
  }

  #removedBefore(index: number): number {
    let low = 0
    for (let high = this.#removedBlocks.length; low < high; ) {
      const middle = (low + high) >> 1
      if ((this.#removedBlocks[middle] ?? 0) < index) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Renumbers events of the responses format, because added events shift later ones. */
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
    if (!this.#format.events.repeatsTexts || original === '') return
    if (!this.#repeated.has(original)) this.#repeatedSize += original.length + masked.length
    this.#repeated.set(original, masked)
    for (const [oldest, text] of this.#repeated) {
      if (this.#repeatedSize <= this.#maxHeld * 2) break
      this.#repeated.delete(oldest)
      this.#repeatedSize -= oldest.length + text.length
    }
  }

  /** Returns the masked forms of texts that were streamed; masks texts that were not. */
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

/** Maximum number of texts at once. */
const maxTexts = 1024

const tooManyTexts = () =>
  new LlmError(502, 'the answer has too many choices or parts at once to be guarded')

const isEmptied = ({ hasText, hasMaskedText, isDone }: TextPart): boolean =>
  isDone && hasText && !hasMaskedText

export const undecided = () =>
  new LlmError(502, 'a pattern of a response guard stays undecided for too long')
