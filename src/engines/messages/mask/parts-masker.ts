/**
 * Masks a text that consists of parts, such as the blocks of a message. A match may lie within one
 * part or span several, so the parts are read in three ways: each alone, joined, and joined with a
 * space. Overlapping matches become one, whose replacement is put where the first match begins. The
 * result does not depend on how a part was cut into pieces.
 */

import { Fifo } from '../../../ground/base/fifo.ts'
import type { Mask, MaskStream } from '../../core/index.ts'
import type { OnMatch } from './match-counts.ts'

/** Receives masked text. */
export interface PartSink {
  text(text: string): void
  /** Called at the end of a part; the text that follows belongs to the next part. */
  endPart(): void
}

/** A match, with byte offsets in the joined text; `rule` is -1 if it continues the previous match. */
interface Match {
  readonly start: number
  readonly end: number
  readonly rule: number
}

type ReadingKind = 'joined' | 'alone' | 'spaced'

const space = Buffer.from(' ')
const noBytes = new Uint8Array()

/** One way to read the parts. Offsets refer to the joined text. */
class Reading {
  readonly kind: ReadingKind
  readonly stream: MaskStream
  /** Matches that are not applied yet, in order. */
  readonly matches = new Fifo<Match>()
  /** All matches that begin before this offset are known. */
  settled = 0
  /** Number of settled bytes of the stream, including added spaces. */
  #at = 0
  #pushed = 0
  /** Positions in the stream of added spaces that `#offsetOf` has not passed yet. */
  readonly #spaces = new Fifo<number>()
  /** Number of added spaces that `#offsetOf` has passed. */
  #passed = 0
  #wantsSpace = false
  /** The rule of a match that covers only an added space so far; otherwise -1. */
  #begunRule = -1

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
    this.#take(noBytes, true)
    this.stream.restart()
  }

  end(): void {
    this.#take(noBytes, true)
  }

  #take(bytes: Uint8Array, isEnd: boolean): void {
    this.#pushed += bytes.length
    this.stream.pushEdits(bytes, isEnd, this.#edit)
    this.settled = this.#offsetOf(this.#at)
  }

  readonly #edit = (plain: number, masked: number, rule: number): void => {
    if (plain > 0) this.#begunRule = -1
    const start = this.#offsetOf(this.#at + plain)
    this.#at += plain + masked
    if (masked === 0) return
    const end = this.#offsetOf(this.#at)
    const found = rule < 0 ? this.#begunRule : rule
    this.#begunRule = end === start ? found : -1
    if (end > start) this.matches.push({ start, end, rule: found })
  }

  /** Converts a stream position to an offset in the joined text. Positions must not fall between calls. */
  #offsetOf(position: number): number {
    while ((this.#spaces.first ?? position) < position) {
      this.#spaces.take()
      this.#passed++
    }
    return position - this.#passed
  }
}

/** A buffer of the last bytes of a text; offsets are counted from the start of the text. */
class ByteWindow {
  #bytes = Buffer.alloc(256)
  /** Offset of the first kept byte. */
  #start = 0
  /** Offset of the end of the text. */
  #end = 0

  get end(): number {
    return this.#end
  }

  /** Returns the appended bytes, which are valid until the next call. */
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

  /** Drops the bytes before an offset if they are at least half of the kept ones. */
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
  readonly #onMatch: OnMatch | undefined
  readonly #readings: readonly Reading[]
  readonly #window = new ByteWindow()
  /** Offsets of the ends of parts that were not passed on yet. */
  readonly #partEnds = new Fifo<number>()
  /** The offset up to which everything was passed on. */
  #at = 0
  /** End offset of the last match. */
  #maskedUntil = 0
  /** The first half of a surrogate pair whose second half has not arrived. */
  #half = ''
  /** Number of replacements. */
  count = 0

  constructor(mask: Mask, sink: PartSink, onMatch?: OnMatch) {
    this.#mask = mask
    this.#sink = sink
    this.#onMatch = onMatch
    // Among matches that begin at the same offset, the first reading selects the replacement.
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
    this.#partEnds.push(this.#window.end)
    this.#settle()
  }

  end(): void {
    this.#readHalf()
    for (const reading of this.#readings) reading.end()
    this.#settle()
  }

  /** Releases memory of the core. Idempotent. */
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

  /** Passes on the text that all readings have settled. */
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
        this.#onMatch?.(this.#mask, match.rule)
      }
      this.#maskedUntil = Math.max(this.#maskedUntil, match.end)
    }
    this.#advance(Math.min(this.#maskedUntil, limit), true)
    this.#advance(limit, false)
    this.#window.drop(this.#at)
  }

  /** Takes the next match before the limit. Among matches at one offset, a continuation comes first. */
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

  /** Advances to an offset: passes on ends of parts, and the text unless it is masked. */
  #advance(to: number, isMasked: boolean): void {
    while ((this.#partEnds.first ?? Number.POSITIVE_INFINITY) <= to) {
      this.#pass(this.#partEnds.take() ?? to, isMasked)
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
  /** Number of replacements. */
  readonly count: number
}

/** Masks the parts of a whole text; the result has the same number of parts. */
export function maskTexts(mask: Mask, texts: readonly string[], onMatch?: OnMatch): MaskedTexts {
  const [only = ''] = texts
  if (texts.length === 1) {
    const { text, count } = mask.apply(only, onMatch && ((rule) => onMatch(mask, rule)))
    return { texts: [text], count }
  }
  const masked: string[] = ['']
  const sink: PartSink = {
    text(text) {
      masked.push((masked.pop() ?? '') + text)
    },
    endPart: () => void masked.push(''),
  }
  const masker = new PartsMasker(mask, sink, onMatch)
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

/** Applies several masks in turn. */
export function maskThrough(masks: readonly Mask[], texts: readonly string[]): MaskedTexts {
  let current: MaskedTexts = { texts, count: 0 }
  for (const mask of masks) {
    const masked = maskTexts(mask, current.texts)
    current = { texts: masked.texts, count: current.count + masked.count }
  }
  return current
}
