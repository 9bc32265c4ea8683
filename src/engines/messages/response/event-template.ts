/**
 * Recognizes events of a stream that differ from an earlier one only in their text, as most do. The gateway
 * knows what such an event says without parsing it:
 *
 *   {"id":"1","choices":[{"delta":{"content":" gateway"}}],"usage":null,"obfuscation":"x7"}
 *   |            fixed                      | text  |   fixed                       |tx|fx
 *
 * Texts are taken as they are only if they need no JSON escapes, so that they are what a parser would read.
 */
import { isUtf8 } from 'node:buffer'
import { backslash, firstPrintable, isDigit, quote } from '../../json/syntax.ts'
import type { JsonObject } from '../json/json.ts'

/** The parts of an event that may differ, in order of their position. */
interface Gap {
  /** Range in the bytes of the learned event. */
  readonly start: number
  readonly end: number
  readonly isNumber: boolean
  /** True for the content, whose length is reported. */
  readonly isContent: boolean
}

/** A range of bytes that clients do not get as it is. */
interface Cut {
  /** Index of the fixed part in which the range is. */
  readonly part: number
  readonly start: number
  readonly length: number
  /** What clients get instead; empty for nothing. */
  readonly replacement: Buffer
}

const none: Buffer = Buffer.alloc(0)
const lineFeed = 0x0a
const dataField = 'data: '
/** Characters that are escaped, or that the data has only if it is on several lines. */
const unlearned = /[\\\r\n]/
/** Number of templates to learn without a match before no more are learned. */
const maxFailures = 8

export class EventTemplate {
  #type: string | undefined
  /** What precedes the data of an event, as most providers write it. */
  #opening: Buffer = none
  #fixed: readonly Buffer[] = []
  #gaps: readonly Gap[] = []
  #cut: Cut | undefined
  /** What clients get instead of the range from `cutStart` to `cutEnd`; empty for nothing. */
  replacement: Buffer = none
  #failures = 0
  readonly #needsUtf8: boolean
  /** Number of bytes of content in the last event that matched. */
  contentBytes = 0
  /** Range of the last event that matched that is replaced; empty if clients get all of it. */
  cutStart = 0
  cutEnd = 0

  /** `needsUtf8`: whether an event with a text that is not UTF-8 must be converted. */
  constructor(needsUtf8 = false) {
    this.#needsUtf8 = needsUtf8
  }

  /** Whether bytes [start, end) are the data of an event that differs from the learned one in its texts only. */
  matches(bytes: Buffer, start: number, end: number, type: string): boolean {
    const fixed = this.#fixed
    if (fixed.length === 0 || (this.#type ?? '') !== type) return false
    let at = start
    let contentBytes = 0
    this.cutStart = start
    this.cutEnd = start
    for (let part = 0; part < fixed.length; part++) {
      const wanted = fixed[part] as Buffer
      const next = at + wanted.length
      if (next > end || bytes.compare(wanted, 0, wanted.length, at, next) !== 0) return false
      if (this.#cut?.part === part) {
        this.cutStart = at + this.#cut.start
        this.cutEnd = this.cutStart + this.#cut.length
      }
      at = next
      const gap = this.#gaps[part]
      if (gap === undefined) break
      const stop = gap.isNumber
        ? endOfDigits(bytes, at, end)
        : endOfText(bytes, at, end, this.#needsUtf8)
      if (stop <= at) return false
      if (gap.isContent) contentBytes = stop - at
      at = stop
    }
    if (at !== end) return false
    this.contentBytes = contentBytes
    this.#failures = 0
    return true
  }

  /** Whether bytes [start, end) are one such event, whole and written as providers usually do. */
  matchesEvent(bytes: Buffer, start: number, end: number): boolean {
    const opening = this.#opening
    const from = start + opening.length
    const to = end - 2
    if (from >= to || bytes[to] !== lineFeed || bytes[to + 1] !== lineFeed) return false
    if (bytes.compare(opening, 0, opening.length, start, from) !== 0) return false
    return this.matches(bytes, from, to, this.#type ?? '')
  }

  /**
   * Learns an event. `content` is its only text, and `written` the data that clients get, which may differ in
   * one range outside of the texts.
   */
  learn(
    type: string | undefined,
    data: string,
    parsed: JsonObject,
    content: string,
    written: string,
  ): void {
    if (this.#failures >= maxFailures || unlearned.test(data)) return
    this.#failures++
    const bytes = Buffer.from(data)
    const gaps = gapsOf(bytes, parsed, content)
    if (gaps === undefined) return
    const fixed = fixedParts(bytes, gaps)
    const cut = written === data ? undefined : cutOf(bytes, Buffer.from(written), gaps)
    if (written !== data && cut === undefined) return
    this.#type = type
    this.#opening = Buffer.from(type === undefined ? dataField : `event: ${type}\n${dataField}`)
    this.#fixed = fixed
    this.#gaps = gaps
    this.#cut = cut
    this.replacement = cut?.replacement ?? none
  }
}

/** Returns the end of a text without escapes; -1 if it has any, or is not complete. */
function endOfText(bytes: Buffer, start: number, end: number, needsUtf8: boolean): number {
  let all = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number
    if (byte === quote) {
      return all < 0x80 || !needsUtf8 || isUtf8(bytes.subarray(start, at)) ? at : -1
    }
    if (byte === backslash || byte < firstPrintable) return -1
    all |= byte
  }
  return -1
}

function endOfDigits(bytes: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && isDigit(bytes[at])) at++
  // A number with a leading zero is not JSON, and a long one is kept as text.
  return at - start > 15 || (at - start > 1 && bytes[start] === 0x30) ? -1 : at
}

/** Fields at the top of events that no one but the client reads, and that differ in each event. */
const paddingField = 'obfuscation'
const counterField = 'sequence_number'

/** Returns undefined if the position of a text is not certain. */
function gapsOf(bytes: Buffer, parsed: JsonObject, content: string): readonly Gap[] | undefined {
  const found = [gapAt(bytes, `"${content}"`, 1, { isNumber: false, isContent: true })]
  const { [paddingField]: padding, [counterField]: counter } = parsed
  if (typeof padding === 'string') {
    const before = `"${paddingField}":"`
    found.push(
      gapAt(bytes, `${before}${padding}"`, before.length, { isNumber: false, isContent: false }),
    )
  }
  if (typeof counter === 'number') {
    const before = `"${counterField}":`
    found.push(
      gapAt(bytes, `${before}${counter}`, before.length, { isNumber: true, isContent: false }),
    )
  }
  const gaps = found.filter((gap) => gap !== undefined)
  if (gaps.length < found.length) return undefined
  return gaps.sort((a, b) => a.start - b.start)
}

/** Finds text that occurs once; the gap begins `skipped` bytes after its start, and strings end with a quote. */
function gapAt(
  bytes: Buffer,
  text: string,
  skipped: number,
  kind: Pick<Gap, 'isNumber' | 'isContent'>,
): Gap | undefined {
  const wanted = Buffer.from(text)
  const at = bytes.indexOf(wanted)
  if (at < 0 || bytes.indexOf(wanted, at + 1) >= 0) return undefined
  const end = at + wanted.length - (kind.isNumber ? 0 : 1)
  return { start: at + skipped, end, ...kind }
}

function fixedParts(bytes: Buffer, gaps: readonly Gap[]): Buffer[] {
  const starts = [0, ...gaps.map(({ end }) => end)]
  const ends = [...gaps.map(({ start }) => start), bytes.length]
  return starts.map((start, part) => bytes.subarray(start, ends[part]))
}

/** Returns the range in which the bytes differ from `written`; undefined if it is not in a fixed part. */
function cutOf(bytes: Buffer, written: Buffer, gaps: readonly Gap[]): Cut | undefined {
  const shorter = Math.min(bytes.length, written.length)
  let at = 0
  while (at < shorter && bytes[at] === written[at]) at++
  let same = 0
  while (same < shorter - at && bytes.at(-1 - same) === written.at(-1 - same)) same++
  // An empty range would count as no change.
  if (at + same === bytes.length) at--
  const length = bytes.length - at - same
  const replacement = written.subarray(at, written.length - same)
  const part = gaps.filter(({ end }) => end <= at).length
  const partStart = part === 0 ? 0 : (gaps[part - 1]?.end ?? 0)
  const partEnd = gaps[part]?.start ?? bytes.length
  return at + length <= partEnd ? { part, start: at - partStart, length, replacement } : undefined
}
