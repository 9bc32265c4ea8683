/**
 * Divides a streamed response into windows. Guards check a window while the model continues. Then the window is released,
 * except for the end of each text, which is checked again with the next window: so one of them has each match whole.
 */
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../format.ts'
import { LlmError } from '../llm-error.ts'
import { asidesPrefix } from './event-texts.ts'
import { HeldStream, readHeld } from './held-stream.ts'
import { type ParsedEvent, readGuardedEvent } from './masked-events.ts'
import { ReleasedTexts } from './part-texts.ts'

/** Number of new characters after which a window is checked. */
export const windowLength = 1_000
/** Number of characters at the end of a text that are checked again with the next window. */
export const windowOverlap = 500
/** Before the first check, events without a text are released unchecked after this number of them. */
const maxTextlessEvents = 1_000
/** Maximum number of places at which cutting a window is tried. */
const maxCuts = 16
/** A masked text is cut where this number of characters is unchanged on both sides of the cut. */
const anchorLength = 12

interface WindowEvent {
  readonly held: ParsedEvent
  /** Number of characters that the event adds to each group of texts. */
  readonly lengths: readonly (readonly [group: string, length: number])[]
  /** Prefix of the names of the parts that end with this event. */
  readonly ended: string | undefined
}

export class StreamWindows {
  readonly #format: ChatFormat
  readonly #limit: number
  #events: WindowEvent[] = []
  /** Number of characters in the window. */
  #length = 0
  #due = windowLength
  /** The texts of the open window by their groups, before guards have changed them. */
  #originals: ReadonlyMap<string, string> = new Map()
  /** Number of events in the open window. */
  #opened = 0
  readonly #released = new ReleasedTexts()
  #hasClosed = false

  /** `limit` is the maximum number of characters to hold. */
  constructor(format: ChatFormat, limit: number) {
    this.#format = format
    this.#limit = limit
  }

  /** Adds an event of the client's format. Returns whether it ends the response. @throws LlmError 502 */
  add(event: StreamEvent): boolean {
    const held = readHeld(event)
    const texts = held.parsed && readGuardedEvent(this.#format, held.parsed)
    const lengths = (texts?.pieces ?? []).map(
      ({ part, text, isAside }) =>
        [isAside ? part : this.#format.events.groups.of(part), text.length] as const,
    )
    this.#events.push({ held, lengths, ended: texts?.ends })
    for (const [, length] of lengths) this.#length += length
    if (this.#length > this.#limit) {
      throw new LlmError(502, `the response has more than ${this.#limit} characters to be judged`)
    }
    const { parsed } = held
    const { lastTypes, isLast } = this.#format.events
    if (parsed === undefined) return event.data === '[DONE]'
    return lastTypes.includes(String(parsed.type)) || isLast?.(parsed) === true
  }

  /** Whether guards should check the window now. */
  get isDue(): boolean {
    return this.#length >= this.#due
  }

  /** Whether the events contain no text, and need not wait for one. */
  get isTextless(): boolean {
    const { length } = this.#events
    return this.#length === 0 && length > 0 && (this.#hasClosed || length >= maxTextlessEvents)
  }

  /** Opens a window with all events that have arrived. */
  open(): HeldStream {
    const held = this.#held(this.#events.length)
    this.#opened = this.#events.length
    this.#originals = held.contents()
    return held
  }

  /** Releases the settled events of the open window, or all of them. */
  close(held: HeldStream, isAll: boolean): StreamEvent[] {
    this.#hasClosed = true
    if (isAll) return this.#release(held, this.#opened)
    const current = held.contents()
    const end = this.#settled()
    const step = Math.max(1, Math.floor(end / maxCuts))
    for (let at = end; at > 0; at -= step) {
      const settled = this.#mayCut(at, current) ? this.#cut(at, current) : undefined
      if (settled !== undefined) return this.#release(settled, at)
    }
    this.#setDue()
    return []
  }

  /** Sets when the next window is due: later if much text is not settled, so that checks stay few. */
  #setDue(): void {
    this.#due = this.#length + Math.max(windowLength, this.#length / 2)
  }

  #held(end: number): HeldStream {
    const events = this.#events.slice(0, end).map(({ held }) => held)
    return new HeldStream(this.#format, events, { released: this.#released })
  }

  /** Returns the number of events whose texts were checked together with the `windowOverlap` characters after them. */
  #settled(): number {
    const missing = this.#missing()
    let at = this.#opened
    while (missing.size > 0 && at > 0) {
      for (const [group, length] of this.#events[--at]?.lengths ?? []) {
        const left = (missing.get(group) ?? 0) - length
        if (left > 0) missing.set(group, left)
        else missing.delete(group)
      }
    }
    return at
  }

  /** Returns how many characters at the end of each text must wait for the next window; none if the text has ended. */
  #missing(): Map<string, number> {
    const missing = new Map<string, number>()
    for (const { lengths, ended } of this.#events.slice(0, this.#opened)) {
      for (const [group, length] of lengths) {
        if (length === 0) continue
        missing.set(group, Math.min(windowOverlap, (missing.get(group) ?? 0) + length))
      }
      if (ended === undefined) continue
      for (const group of missing.keys()) {
        const isEnded = `${group}/` === ended || group.startsWith(asidesPrefix + ended)
        if (isEnded) missing.delete(group)
      }
    }
    return missing
  }

  /** Estimates from lengths whether changed texts can be cut after the first `end` events. `#cut` costs more. */
  #mayCut(end: number, current: ReadonlyMap<string, string>): boolean {
    const lengths = new Map<string, number>()
    for (const event of this.#events.slice(0, end)) {
      for (const [group, length] of event.lengths) {
        lengths.set(group, (lengths.get(group) ?? 0) + length)
      }
    }
    return [...lengths].every(([group, length]) => {
      const [original = '', now = ''] = [this.#originals.get(group), current.get(group)]
      return original === now || cutOf(original, now, length) !== undefined
    })
  }

  /** Returns the first `end` events with their changed texts; undefined if these cannot be cut there. */
  #cut(end: number, current: ReadonlyMap<string, string>): HeldStream | undefined {
    const settled = this.#held(end)
    const texts: string[] = []
    for (const [group, text] of settled.contents()) {
      const original = this.#originals.get(group)
      const now = current.get(group)
      if (original === undefined || now === undefined || !original.startsWith(text)) return
      const at = original === now ? text.length : cutOf(original, now, text.length)
      if (at === undefined) return
      texts.push(now.slice(0, at))
    }
    settled.replace(texts.map((content) => ({ role: 'assistant', content })))
    return settled
  }

  #release(settled: HeldStream, end: number): StreamEvent[] {
    const events = settled.release()
    for (const [key, text] of settled.parts) {
      if (text.original !== text.current) this.#released.isChanged = true
      if (this.#format.events.repeatsTexts) this.#released.add(key, text)
    }
    this.#events = this.#events.slice(end)
    this.#length = 0
    for (const { lengths } of this.#events) {
      for (const [, length] of lengths) this.#length += length
    }
    this.#setDue()
    return events
  }
}

/**
 * Returns the offset in the masked text that corresponds to the offset `at` in `original`; undefined if this is not
 * certain, because the text around it has changed or occurs twice.
 */
function cutOf(original: string, masked: string, at: number): number | undefined {
  if (at === 0 || at === original.length) return at === 0 ? 0 : masked.length
  const start = Math.max(0, at - anchorLength)
  const anchor = original.slice(start, at + anchorLength)
  const found = masked.indexOf(anchor)
  const isOnlyOne = (text: string) => text.indexOf(anchor) === text.lastIndexOf(anchor)
  if (found < 0 || !isOnlyOne(original) || !isOnlyOne(masked)) return undefined
  return found + at - start
}
