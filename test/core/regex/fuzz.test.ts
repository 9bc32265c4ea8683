import { describe, expect, it } from 'vitest'
import { REGEX_PROGRAM_TOO_LARGE } from '../../../src/engines/core/abi.ts'
import { Random, type RandomPattern, randomPattern, randomText } from './random-pattern.ts'
import { codeOf, type Pair, RawRegex } from './raw-regex.ts'

// A fixed number of patterns by default. SLUICE_FUZZ_SECONDS=600 runs for that long from a random
// seed, and SLUICE_FUZZ_SEED repeats a run.
const seconds = Number(process.env.SLUICE_FUZZ_SECONDS ?? 0)
const seed = Number(
  process.env.SLUICE_FUZZ_SEED ?? (seconds > 0 ? Date.now() % 1_000_000 : 20261120),
)
const patterns = 4000
const timeout = (seconds + 60) * 1000

/** Goes on for `count` rounds, or for the seconds asked for. */
function* rounds(count: number): Generator<number> {
  const end = Date.now() + seconds * 1000
  for (let round = 0; round < count || Date.now() < end; round++) yield round
}

const raw = new RawRegex()

/** JavaScript's matches as byte spans; undefined if a match splits a surrogate pair. */
function expectedSpans(regex: RegExp, text: string): Pair[] | undefined {
  const offsets = new Map<number, number>()
  let index = 0
  let bytes = 0
  for (const character of text) {
    offsets.set(index, bytes)
    index += character.length
    bytes += Buffer.byteLength(character)
  }
  offsets.set(index, bytes)
  const spans: Pair[] = []
  for (const match of text.matchAll(regex)) {
    const start = offsets.get(match.index)
    const end = offsets.get(match.index + match[0].length)
    if (start === undefined || end === undefined) return undefined
    spans.push([start, end])
  }
  return spans
}

function flagsOf({ flags }: RandomPattern): number {
  return (
    (flags.i ? codeOf('REGEX_CASE_INSENSITIVE') : 0) |
    (flags.m ? codeOf('REGEX_MULTI_LINE') : 0) |
    (flags.s ? codeOf('REGEX_DOT_ALL') : 0)
  )
}

describe(`regex against JavaScript's RegExp, seed ${seed}`, () => {
  it('finds the same spans, matches and full matches for random patterns', { timeout }, () => {
    const random = new Random(seed)
    let compared = 0
    for (const _ of rounds(patterns)) {
      const pattern = randomPattern(random)
      const letters = Object.entries(pattern.flags).map(([flag, isSet]) => (isSet ? flag : ''))
      const search = new RegExp(pattern.source, `gu${letters.join('')}`)
      const whole = new RegExp(`^(?:${pattern.source})$`, `u${letters.join('').replace('m', '')}`)
      const handle = raw.compile(Buffer.from(pattern.source), flagsOf(pattern))
      if (handle === REGEX_PROGRAM_TOO_LARGE) continue
      expect(handle, `seed ${seed}: ${pattern.source}`).toBeGreaterThan(0)
      for (let i = 0; i < 6; i++) {
        const text = randomText(random, pattern.alphabet, 14)
        const spans = expectedSpans(search, text)
        if (spans === undefined) continue
        const bytes = Buffer.from(text)
        const where = `seed ${seed}: ${search} on ${JSON.stringify(text)}`
        expect(raw.spans(handle, bytes), where).toEqual(spans)
        expect(raw.isMatch(handle, bytes), where).toBe(spans.length > 0)
        if (!pattern.flags.m) expect(raw.fullMatch(handle, bytes), where).toBe(whole.test(text))
        compared += spans.length
      }
      raw.free(handle)
    }
    expect(compared).toBeGreaterThan(patterns)
  })

  it('finds matches at any offset within a vector', { timeout }, () => {
    const random = new Random(seed)
    const pieces = ['a', 'b', 'k', '-', '[ab]', '[-k]', '[^a]', '(?:a|b-)', '\\b', 'é', '[aé]']
    const letters = [...'aaabbk--xé☃']
    for (const _ of rounds(1500)) {
      const parts = Array.from({ length: 1 + random.below(5) }, () => random.pick(pieces))
      const source = `${parts.join('')}${random.pick(['', 'a+', 'k?', '-{2,}', '|ka-'])}`
      const flags = random.below(4) === 0 ? 'i' : ''
      const handle = raw.compile(Buffer.from(source), flags === 'i' ? 1 : 0)
      const search = new RegExp(source, `gu${flags}`)
      for (let i = 0; i < 4; i++) {
        const text = randomText(random, letters, 120)
        const where = `seed ${seed}: ${search} on ${JSON.stringify(text)}`
        expect(raw.spans(handle, Buffer.from(text)), where).toEqual(expectedSpans(search, text))
      }
      raw.free(handle)
    }
  })

  it('finds the same spans if an automaton has more states than its cache holds', {
    timeout,
  }, () => {
    const random = new Random(seed)
    const sources = [
      '[ab]*?a[ab]{12}c',
      '(?:a[ab]{9}|b[ab]{10}a)c|ca[abc]{8,11}b',
      '\\b[abc]{3,9}a[abc]{9}\\b',
      '[a-c ]{2,9}?b[a-c]{11}a',
      '[ab]{0,14}[bc]{3,14}a[^c]{10}',
    ]
    for (const source of sources) {
      const handle = raw.compile(Buffer.from(source))
      for (let i = 0; i < 4; i++) {
        const letters = i % 2 === 0 ? 'abc aabb' : 'abc '
        const text = Array.from({ length: 3000 }, () => random.pick([...letters])).join('')
        expect(raw.spans(handle, Buffer.from(text)), `seed ${seed}: ${source}`).toEqual(
          expectedSpans(new RegExp(source, 'gu'), text),
        )
      }
      raw.free(handle)
    }
  })

  it('agrees on the categories, scripts and letter cases of the first 12288 code points', {
    timeout,
  }, () => {
    // The host's Unicode may be newer than our frozen one: unassigned code points are left aside.
    const points = Array.from({ length: 0x3000 }, (_, point) => String.fromCodePoint(point))
    const assigned = points.filter((point) => !/\p{Cn}/u.test(point))
    const text = assigned.join('\n')
    for (const source of [
      '\\p{Lu}',
      '\\p{Ll}',
      '\\p{M}',
      '\\p{Nd}',
      '\\p{P}',
      '\\p{S}',
      '\\P{L}',
    ]) {
      compare(source, '', text)
    }
    for (const script of ['Latin', 'Greek', 'Cyrillic', 'Hebrew', 'Arabic', 'Thai', 'Common']) {
      compare(`\\p{Script=${script}}`, '', text)
    }
    for (const source of ['[a-z]', '[à-þ]', '[α-ω]', '[а-я]', '[ა-ჰ]', '\\u{1e9e}', 'ǆ', 'Ⴀ']) {
      compare(source, 'i', text)
    }
  })
})

function compare(source: string, flags: string, text: string): void {
  const handle = raw.compile(Buffer.from(source), flags === 'i' ? 1 : 0)
  expect(handle, source).toBeGreaterThan(0)
  const spans = expectedSpans(new RegExp(source, `gu${flags}`), text)
  expect(raw.spans(handle, Buffer.from(text)), source).toEqual(spans)
  raw.free(handle)
}

describe(`the regex engine with random bytes, seed ${seed}`, () => {
  it('refuses or matches them, and never traps', { timeout }, () => {
    const random = new Random(seed)
    const syntax = Buffer.from('ab01\\[](){}?*+|^$.-,:=!<>PpuxdwsbBAzQE^iUms\n\u00e9')
    for (const round of rounds(6000)) {
      const fromSyntax = round % 3 !== 0
      const pattern = Uint8Array.from({ length: random.below(24) }, () =>
        fromSyntax ? (syntax[random.below(syntax.length)] ?? 0) : random.below(256),
      )
      const handle = raw.compile(pattern, random.below(16))
      expect(handle).not.toBe(0)
      if (handle < 0) continue
      const text = Uint8Array.from({ length: random.below(200) }, () => random.below(256))
      for (const [start, end] of raw.spans(handle, text)) {
        expect(start).toBeLessThanOrEqual(end)
        expect(end).toBeLessThanOrEqual(text.length)
      }
      raw.fullMatch(handle, text)
      raw.free(handle)
    }
  })

  it('returns an error for invalid handles and spans', () => {
    const { exports } = raw.core
    const argument = codeOf('ERROR_ARGUMENT')
    const handle = raw.compile(Buffer.from('a'))
    for (const wrong of [0, -1, 1 << 20, 0x7fffffff, -0x80000000]) {
      expect(exports.regex_is_match(wrong, 16, 1)).toBe(argument)
      expect(exports.regex_full_match(wrong, 16, 1)).toBe(argument)
      exports.regex_free(wrong)
    }
    expect(exports.regex_is_match(handle, -16, 8)).toBe(argument)
    expect(exports.regex_is_match(handle, 16, -1)).toBe(argument)
    expect(exports.regex_find(handle, 16, 8, 0, -4)).toBe(argument)
    expect(exports.regex_find_all(handle, 16, 8, 0, 16, 0x7fffffff)).toBe(argument)
    expect(exports.regex_find_all(handle, 16, 8, -1, 16, 1)).toBe(argument)
    expect(exports.regex_compile(-16, 64, 0)).toBe(argument)
    raw.free(handle)
    expect(exports.regex_is_match(handle, 16, 1)).toBe(argument)
  })
})
