/**
 * Masks a text that comes in parts: blocks of a message, parts of a content. A match may lie within one
 * part or reach over several, so the parts are read in three ways: each by itself, one directly after
 * the other, and with a space between them. Matches that overlap become one, whichever way found them;
 * its replacement stands where it begins. What comes out does not depend on how a part is cut.
 */
import { Fifo } from '../../../base/fifo.ts'
import type { Mask, MaskStream } from '../../../core/index.ts'

/** Takes masked text. */
export interface PartSink {
  text(text: string): void
  /** Everything of a part has been given out; what follows belongs to the next one. */
  endPart(): void
}

/** A match in the text of all parts, in bytes; `rule` is -1 for what belongs to the match before. */
interface Match {
  readonly start: number
  readonly end: number
  readonly rule: number
}

type ReadingKind = 'joined' | 'alone' | 'spaced'

const space = Buffer.from(' ')
const nothing = new Uint8Array()

/** One way to read the parts. Offsets are those of the text with nothing between its parts. */
class Reading {
  readonly kind: ReadingKind
  readonly stream: MaskStream
  /** Found and not yet applied, in order. */
  readonly matches = new Fifo<Match>()
  /** All matches that begin before this offset are known. */
  settled = 0
  /** Bytes of the stream that are settled, with those of spaces. */
  #at = 0
  #pushed = 0
  /** Where the stream has spaces that the text has not, and how many lie behind. */
  readonly #spaces = new Fifo<number>()
  #passed = 0
  #wantsSpace = false
  /** The rule of a match that so far covers nothing but a space. */
  #begun = -1

  constructor(kind: ReadingKind, mask: Mask) {
    this.kind = kind
    this.stream = mask.stream()
  }

  push(bytes: Uint8Array): void {
    if (this.#wantsSpace) {
      this.#wantsSpace = false
      this.#spaces.push(this.#pushed)
      this.#take(space, false)
    }
    this.#take(bytes, false)
  }

  endPart(): void {
    if (this.kind === 'spaced') this.#wantsSpace = this.#pushed > 0
    if (this.kind !== 'alone') return
    this.#take(nothing, true)
    this.stream.restart()
  }

  end(): void {
    this.#take(nothing, true)
  }

  #take(bytes: Uint8Array, isEnd: boolean): void {
    this.#pushed += bytes.length
    this.stream.pushEdits(bytes, isEnd, this.#edit)
    this.settled = this.#offsetOf(this.#at)
  }

  readonly #edit = (plain: number, masked: number, rule: number): void => {
    if (plain > 0) this.#begun = -1
    const start = this.#offsetOf(this.#at + plain)
    this.#at += plain + masked
    if (masked === 0) return
    const end = this.#offsetOf(this.#at)
    const found = rule < 0 ? this.#begun : rule
    this.#begun = end === start ? found : -1
    if (end > start) this.matches.push({ start, end, rule: found })
  }

  /** Offsets are asked for in rising order. */
  #offsetOf(position: number): number {
    while ((this.#spaces.first ?? position) < position) {
      this.#spaces.take()
      this.#passed++
    }
    return position - this.#passed
  }
}

/** The bytes of a text from an offset on. */
class ByteWindow {
  #bytes = Buffer.alloc(256)
  /** Of the text: the first byte that is kept, and the one behind the last. */
  #start = 0
  #end = 0

  get end(): number {
    return this.#end
  }

  /** The bytes that were appended; valid until the next call. */
  append(text: string): Uint8Array {
    const used = this.#end - this.#start
    const needed = used + text.length * 3
    if (needed > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(needed, this.#bytes.length * 2))
      this.#bytes.copy(larger, 0, 0, used)
      this.#bytes = larger
    }
    const length = this.#bytes.write(text, used, 'utf8')
    this.#end += length
    return this.#bytes.subarray(used, used + length)
  }

  text(from: number, to: number): string {
    return this.#bytes.toString('utf8', from - this.#start, to - this.#start)
  }

  /** Forgets what lies before an offset, once that is at least half of what is kept. */
  drop(before: number): void {
    const gone = before - this.#start
    const used = this.#end - this.#start
    if (gone * 2 < used) return
    this.#bytes.copy(this.#bytes, 0, gone, used)
    this.#start = before
  }
}

export class PartsMasker {
  readonly #mask: Mask
  readonly #sink: PartSink
  readonly #readings: readonly Reading[]
  readonly #window = new ByteWindow()
  /** Ends of parts that have not been given out. */
  readonly #borders = new Fifo<number>()
  /** Everything before this offset was given out. */
  #at = 0
  /** The match under way covers the text up to here. */
  #maskedUntil = 0
  /** First half of a surrogate pair whose second half has not come. */
  #half = ''
  /** Replacements so far. */
  count = 0

  constructor(mask: Mask, sink: PartSink) {
    this.#mask = mask
    this.#sink = sink
    // Where several begin at one place, the first one says what stands there.
    this.#readings = (['joined', 'alone', 'spaced'] as const).map((kind) => new Reading(kind, mask))
  }

  get heldBytes(): number {
    return this.#window.end - this.#at
  }

  push(text: string): void {
    const whole = this.#half + text
    const last = whole.charCodeAt(whole.length - 1)
    const isHalf = last >= 0xd800 && last < 0xdc00
    this.#half = isHalf ? whole.slice(-1) : ''
    this.#read(isHalf ? whole.slice(0, -1) : whole)
    this.#settle()
  }

  endPart(): void {
    this.#readHalf()
    for (const reading of this.#readings) reading.endPart()
    this.#borders.push(this.#window.end)
    this.#settle()
  }

  end(): void {
    this.#readHalf()
    for (const reading of this.#readings) reading.end()
    this.#settle()
  }

  /** Gives the core its memory back. Idempotent. */
  dispose(): void {
    for (const { stream } of this.#readings) stream.dispose()
  }

  #readHalf(): void {
    const half = this.#half
    this.#half = ''
    this.#read(half)
  }

  #read(text: string): void {
    if (text === '') return
    const bytes = this.#window.append(text)
    for (const reading of this.#readings) reading.push(bytes)
  }

  /** Gives out what all readings have settled. */
  #settle(): void {
    const limit = Math.min(...this.#readings.map(({ settled }) => settled))
    for (;;) {
      const match = this.#nextMatch(limit)
      if (match === undefined) break
      if (match.rule >= 0 && match.start >= this.#maskedUntil) {
        this.#advance(this.#maskedUntil, true)
        this.#advance(match.start, false)
        this.#sink.text(this.#mask.replacementOf(match.rule))
        this.count++
      }
      this.#maskedUntil = Math.max(this.#maskedUntil, match.end)
    }
    this.#advance(Math.min(this.#maskedUntil, limit), true)
    this.#advance(limit, false)
    this.#window.drop(this.#at)
  }

  /** The next match that begins before the limit; what goes on with a match comes before others. */
  #nextMatch(limit: number): Match | undefined {
    let from: Reading | undefined
    let best: Match | undefined
    for (const reading of this.#readings) {
      const { first } = reading.matches
      if (first === undefined || first.start >= limit) continue
      const isBefore = best === undefined || first.start < best.start
      const goesOn = first.start === best?.start && first.rule < 0 && best.rule >= 0
      if (!isBefore && !goesOn) continue
      from = reading
      best = first
    }
    from?.matches.take()
    return best
  }

  /** Moves on to an offset: text on the way is given out, unless it is masked; ends of parts always. */
  #advance(to: number, isMasked: boolean): void {
    while ((this.#borders.first ?? Number.POSITIVE_INFINITY) <= to) {
      this.#pass(this.#borders.take() ?? to, isMasked)
      this.#sink.endPart()
    }
    this.#pass(to, isMasked)
  }

  #pass(to: number, isMasked: boolean): void {
    if (to <= this.#at) return
    if (!isMasked) this.#sink.text(this.#window.text(this.#at, to))
    this.#at = to
  }
}

interface MaskedTexts {
  readonly texts: readonly string[]
  /** Replacements made. */
  readonly count: number
}

/** Masks a text of several parts that has come whole; as many texts as there were. */
export function maskTexts(mask: Mask, texts: readonly string[]): MaskedTexts {
  const [only = ''] = texts
  if (texts.length === 1) {
    const { text, count } = mask.apply(only)
    return { texts: [text], count }
  }
  const masked: string[] = ['']
  const masker = new PartsMasker(mask, {
    text(text) {
      masked.push((masked.pop() ?? '') + text)
    },
    endPart: () => void masked.push(''),
  })
  try {
    for (const [at, text] of texts.entries()) {
      if (at > 0) masker.endPart()
      masker.push(text)
    }
    masker.end()
    const { count } = masker
    return { texts: count === 0 ? texts : masked, count }
  } finally {
    masker.dispose()
  }
}

/** The same through several masks, one after the other. */
export function maskThrough(masks: readonly Mask[], texts: readonly string[]): MaskedTexts {
  let current: MaskedTexts = { texts, count: 0 }
  for (const mask of masks) {
    const masked = maskTexts(mask, current.texts)
    current = { texts: masked.texts, count: current.count + masked.count }
  }
  return current
}
