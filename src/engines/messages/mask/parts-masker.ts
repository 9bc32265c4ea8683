/**
 * Masks a text that consists of parts, such as the blocks of a message. A match may lie within one part or
 * span several, so the parts are read in three ways: joined, each alone, and joined with a space. Overlapping
 * matches become one, whose replacement is put where the first match begins.
 */
import { appendAll } from '../../../ground/base/append-all.ts'
import type { Mask, MaskStream } from '../../core/index.ts'
import type { OnMatch } from './match-counts.ts'

/** A match, with byte offsets in the joined text. */
interface Match {
  readonly start: number
  end: number
  readonly rule: number
}

const space = Buffer.from(' ')

interface MaskedTexts {
  readonly texts: readonly string[]
  /** Number of replacements. */
  readonly count: number
}

/** Masks the parts of a text; the result has the same number of parts. */
export function maskTexts(mask: Mask, texts: readonly string[], onMatch?: OnMatch): MaskedTexts {
  const [only = ''] = texts
  if (texts.length === 1) {
    const { text, count } = mask.apply(only, onMatch && ((rule) => onMatch(mask, rule)))
    return { texts: [text], count }
  }
  return replaceMatches(mask, texts, (rule) => mask.replacementOf(rule), onMatch)
}

/** Like `maskTexts`, with a replacement for each text that matches; undefined leaves the text as it is. */
export function replaceMatches(
  mask: Mask,
  texts: readonly string[],
  replacementOf: (rule: number, matched: string) => string | undefined,
  onMatch?: OnMatch,
): MaskedTexts {
  const parts = texts.map((text) => Buffer.from(text))
  const whole = Buffer.concat(parts)
  const writer = new PartsWriter(parts)
  let count = 0
  for (const { start, end, rule } of merged(matchesOf(mask, parts))) {
    const replacement = replacementOf(rule, whole.toString('utf8', start, end))
    if (replacement === undefined) continue
    writer.replace(start, replacement)
    writer.maskedUntil = end
    count++
    onMatch?.(mask, rule)
  }
  return { texts: count === 0 ? texts : writer.end(), count }
}

/** Makes overlapping matches, which are sorted by their start, one match of the first rule. */
function merged(matches: readonly Match[]): Match[] {
  const found: Match[] = []
  for (const match of matches) {
    const last = found.at(-1)
    if (last === undefined || match.start >= last.end) found.push({ ...match })
    else last.end = Math.max(last.end, match.end)
  }
  return found
}

/** Returns the matches of all readings by their start; among those at one offset, the first one is replaced. */
function matchesOf(mask: Mask, parts: readonly Buffer[]): Match[] {
  const stream = mask.stream()
  try {
    const found = findMatches(stream, Buffer.concat(parts), (position) => position)
    let before = 0
    for (const part of parts) {
      const from = before
      appendAll(
        found,
        findMatches(stream, part, (position) => from + position),
      )
      before += part.length
    }
    return [...found, ...spacedMatches(stream, parts)].sort((a, b) => a.start - b.start)
  } finally {
    stream.dispose()
  }
}

/** Returns the matches in the parts that have a text, joined with spaces. */
function spacedMatches(stream: MaskStream, parts: readonly Buffer[]): Match[] {
  const filled = parts.filter(({ length }) => length > 0)
  /** Positions of the spaces. */
  const spaces: number[] = []
  let length = 0
  for (const part of filled) {
    if (length > 0) spaces.push(length++)
    length += part.length
  }
  let passed = 0
  return findMatches(
    stream,
    Buffer.concat(filled.flatMap((part, at) => (at === 0 ? [part] : [space, part]))),
    (position) => {
      while ((spaces[passed] ?? position) < position) passed++
      return position - passed
    },
  )
}

/** Returns the matches in a text, in order. `offsetOf` gets ascending positions in the text. */
function findMatches(
  stream: MaskStream,
  text: Uint8Array,
  offsetOf: (position: number) => number,
): Match[] {
  const matches: Match[] = []
  let at = 0
  stream.restart()
  stream.pushEdits(text, true, (plain, masked, rule) => {
    const start = offsetOf(at + plain)
    at += plain + masked
    const end = offsetOf(at)
    const last = matches.at(-1)
    if (masked > 0 && rule < 0 && last !== undefined) last.end = end
    else if (masked > 0) matches.push({ start, end, rule })
  })
  // A match of only an added space is none in the text.
  return matches.filter(({ start, end }) => end > start)
}

/** Writes the parts with replacements, which come in the order of their offsets. */
class PartsWriter {
  readonly #parts: readonly Buffer[]
  /** Offset of the end of the last match. */
  maskedUntil = 0
  readonly #written: string[] = ['']
  /** The offset up to which everything was written. */
  #at = 0
  /** The offset of the start of the part that is written. */
  #partStart = 0

  constructor(parts: readonly Buffer[]) {
    this.#parts = parts
  }

  /** Writes the text before `start`, and the replacement of the match that begins there. */
  replace(start: number, replacement: string): void {
    this.#advance(this.maskedUntil, true)
    this.#advance(start, false)
    this.#add(replacement)
  }

  /** Writes the rest. Returns all parts. */
  end(): readonly string[] {
    this.#advance(this.maskedUntil, true)
    this.#advance(Number.POSITIVE_INFINITY, false)
    return this.#written
  }

  /** Goes to an offset, and writes the text before it unless it is masked. */
  #advance(to: number, isMasked: boolean): void {
    for (;;) {
      const part = this.#parts[this.#written.length - 1]
      if (part === undefined) return
      const partEnd = this.#partStart + part.length
      const next = Math.min(to, partEnd)
      const start = this.#partStart
      if (!isMasked) this.#add(part.toString('utf8', this.#at - start, next - start))
      this.#at = next
      if (partEnd > to || this.#written.length === this.#parts.length) return
      this.#partStart = partEnd
      this.#written.push('')
    }
  }

  #add(text: string): void {
    this.#written.push((this.#written.pop() ?? '') + text)
  }
}
