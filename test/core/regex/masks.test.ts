import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Builtin } from '../../../src/engines/core/regex-builtins.ts'
import { compileMask, type Mask, type MaskRule } from '../../../src/engines/core/regex-mask.ts'
import { bytesOfCase, type CaseText, readCaseFiles, stringOfCase } from '../case-files.ts'
import { Random, randomText } from './random-pattern.ts'

interface BuiltinCase {
  readonly name: string
  readonly text: string
  readonly masked: string
}

const seconds = Number(process.env.SLUICE_FUZZ_SECONDS ?? 0)
const seed = Number(
  process.env.SLUICE_FUZZ_SEED ?? (seconds > 0 ? Date.now() % 1_000_000 : 20261120),
)
const timeout = (seconds + 60) * 1000

const builtinRules: readonly MaskRule[] = [
  { builtin: 'Ssn', replacement: '<SSN>' },
  { builtin: 'CreditCard', replacement: '<CREDIT_CARD>' },
  { builtin: 'PhoneNumber', replacement: '<PHONE_NUMBER>' },
  { builtin: 'Email', replacement: '<EMAIL_ADDRESS>' },
  { builtin: 'CaSin', replacement: '<CA_SIN>' },
]

function maskOf(rules: readonly MaskRule[]): Mask {
  const outcome = compileMask(rules)
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.mask
}

/** The output of a stream that gets `bytes` cut at `cuts`, and the most it held back. */
function streamed(mask: Mask, bytes: Uint8Array, cuts: readonly number[]) {
  using stream = mask.stream()
  const parts: Uint8Array[] = []
  let from = 0
  let held = 0
  for (const cut of cuts) {
    parts.push(stream.pushBytes(bytes.subarray(from, cut)))
    held = Math.max(held, stream.heldBytes)
    from = cut
  }
  parts.push(stream.endBytes(bytes.subarray(from)))
  const out = Buffer.concat(parts)
  return { text: out.toString(), bytes: out, count: stream.count, held }
}

describe('builtin mask rules', () => {
  const file = join(import.meta.dirname, 'masks', 'builtins.json')
  const cases: BuiltinCase[] = JSON.parse(readFileSync(file, 'utf8'))
  const mask = maskOf(builtinRules)

  it.each(cases)('mask $name: $text', ({ text, masked }) => {
    expect(mask.apply(text).text).toBe(masked)
  })

  it.each(cases)('mask the same text wherever a stream is split: $name', ({ text, masked }) => {
    const bytes = Buffer.from(text)
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(streamed(mask, bytes, [cut]).text, `cut at ${cut}`).toBe(masked)
    }
    const everywhere = Array.from({ length: bytes.length }, (_, i) => i)
    expect(streamed(mask, bytes, everywhere).text).toBe(masked)
  })

  it('hold back no more bytes of a stream than holdBytes', () => {
    expect(mask.holdBytes).toBe(323)
    const longest = `${'a'.repeat(64)}@${'b.'.repeat(126)}`
    const bytes = Buffer.from(`${longest}${longest} +1${' 2'.repeat(14)} x`)
    const everywhere = Array.from({ length: bytes.length }, (_, i) => i)
    const { text, held } = streamed(mask, bytes, everywhere)
    expect(text).toBe(mask.apply(bytes.toString()).text)
    expect(held).toBeGreaterThan(200)
    expect(held).toBeLessThanOrEqual(323)
  })
})

interface StreamCase extends CaseText {
  readonly title: string
  /** Default: the five builtins. */
  readonly rules?: readonly {
    pattern?: string
    builtin?: string
    words?: string[]
    replacement: string
  }[]
  /** The maximum number of bytes that a stream may hold back; -1: unlimited. */
  readonly hold?: number
  readonly masked?: string
  readonly maskedHex?: string
}

/** Builtins by the numbers that the core gives them. */
const byNumber: Readonly<Record<string, Builtin>> = {
  DETECT_EMAIL: 'Email',
  DETECT_IBAN: 'Iban',
  DETECT_IP: 'IpAddress',
  DETECT_VAT: 'VatNumber',
  DETECT_TAX_ID: 'DeTaxId',
  DETECT_NIR: 'FrNir',
  DETECT_NIF: 'EsNif',
  DETECT_FISCAL_CODE: 'ItFiscalCode',
  DETECT_BSN: 'NlBsn',
  DETECT_PESEL: 'PlPesel',
  DETECT_PERSONNUMMER: 'SePersonnummer',
  DETECT_NINO: 'UkNino',
  DETECT_NHS: 'UkNhs',
  DETECT_AADHAAR: 'InAadhaar',
  DETECT_CPF: 'BrCpf',
  DETECT_CNPJ: 'BrCnpj',
  DETECT_SECRET: 'Secret',
}
const builtinOf = (name = ''): Builtin => {
  const builtin = byNumber[name]
  if (builtin === undefined) throw new Error(`no rule has ${name} yet`)
  return builtin
}

const streamFiles = readCaseFiles<StreamCase>('regex/masks').filter(({ cases }) => cases)
for (const { name, about, cases } of streamFiles) {
  describe(`${name}: ${about}`, () => {
    it.each(cases)('$title', (example) => {
      const { rules, hold, masked, maskedHex, repeat } = example
      using mask = maskOf(
        rules?.map(({ pattern, builtin, words, replacement }) =>
          words !== undefined
            ? { words, replacement }
            : pattern === undefined
              ? { builtin: builtinOf(builtin), replacement }
              : { pattern, replacement },
        ) ?? builtinRules,
      )
      const bytes = bytesOfCase(example)
      const wanted = bytesOfCase({ text: masked, hex: maskedHex, repeat })
      const every = (size: number) =>
        Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => index * size)
      const cutsOf = bytes.length > 400 ? [[], every(7), every(4096)] : every(1).map((cut) => [cut])
      for (const cuts of [[], every(1), ...cutsOf]) {
        const out = streamed(mask, bytes, cuts)
        expect(out.bytes.equals(wanted), `cut at ${cuts.slice(0, 3)}: ${out.text}`).toBe(true)
        if (hold !== undefined && hold >= 0) expect(out.held).toBeLessThanOrEqual(hold)
      }
      if (hold !== undefined) expect(mask.holdBytes ?? -1).toBe(hold)
      const string = stringOfCase(example)
      if (string !== undefined) expect(mask.apply(string).text).toBe(wanted.toString())
    })
  })
}

describe('patterns of a mask', () => {
  it('report how many bytes of a stream they may hold back', () => {
    const holdOf = (pattern: string) => maskOf([{ pattern, replacement: '' }]).holdBytes
    // The undecided bytes, one that decides, and up to three bytes of a truncated character.
    expect(holdOf('abc')).toBe(3 + 4)
    expect(holdOf('é{2,5}')).toBe(10 + 4)
    expect(holdOf('sk-[a-z]{20,}')).toBe(24 + 4)
    expect(holdOf('a|b+|c{3}d*')).toBe(4 + 4)
    expect(holdOf('a+b')).toBeUndefined()
    expect(holdOf('a+\\b')).toBeUndefined()
    expect(holdOf('(?:ab*){2}')).toBeUndefined()
    expect(holdOf('.*')).toBe(4 + 4)
  })

  it('match a long text without holding it back once its start has matched', () => {
    const mask = maskOf([{ pattern: 'sk-[a-z]{4,}', replacement: '<masked>' }])
    using stream = mask.stream()
    let held = 0
    let text = ''
    for (const piece of ['key sk-abc', ...'d'.repeat(5000), ' and ', 'more']) {
      text += stream.push(piece)
      held = Math.max(held, stream.heldBytes)
    }
    text += stream.end()
    expect(text).toBe('key <masked> and more')
    expect(held).toBeLessThanOrEqual(mask.holdBytes ?? 0)
    expect(stream.count).toBe(1)
  })

  it('match independently; of overlapping matches, the first one sets the replacement', () => {
    const mask = maskOf([
      { pattern: 'bcd', replacement: '<1>' },
      { pattern: 'ab', replacement: '<2>' },
      { pattern: 'b|e', replacement: '<3>' },
      { pattern: 'x*', replacement: '<4>' },
    ])
    expect(mask.apply('abcdefxx bc')).toEqual({ text: '<2><3>f<4> <3>c', count: 4 })
  })

  it('report the rule whose pattern is invalid', () => {
    const outcome = compileMask([
      { builtin: 'Email', replacement: '' },
      { pattern: 'é(?=a)', replacement: '' },
    ])
    expect(outcome).toMatchObject({ ok: false, rule: 1, offset: 1 })
  })

  it('match a surrogate pair that is split between two strings', () => {
    using stream = maskOf([{ pattern: '😀', replacement: '<smile>' }]).stream()
    expect(stream.push('a\ud83d') + stream.push('\ude00b') + stream.end()).toBe('a<smile>b')
  })
})

/** A reference for mask rules with JavaScript's regex engine. */
function expectedMask(patterns: readonly string[], text: string): string {
  const spans = patterns.flatMap((pattern, rule) =>
    [...text.matchAll(new RegExp(pattern, 'gu'))]
      .filter(([match]) => match !== '')
      .map((match) => ({ start: match.index, end: match.index + match[0].length, rule })),
  )
  spans.sort((a, b) => a.start - b.start || a.rule - b.rule)
  let out = ''
  let masked = 0
  for (const { start, end, rule } of spans) {
    if (start >= masked) out += `${text.slice(masked, start)}<${rule}>`
    masked = Math.max(masked, end)
  }
  return out + text.slice(masked)
}

describe(`masks of random texts, seed ${seed}`, () => {
  const samples = ['jane.doe@example.com', '4111 1111 1111 1111', '078-05-1120', '(415) 555-2671']
  const alphabets = [
    '0123456789--  ()+.@@ab.Z1_\n',
    'ab@@.',
    '12-- .()+@a',
    'é☃😀ab@.1-',
    '1 -',
  ].map((letters) => [...letters])
  const patternSets: readonly (readonly string[])[] = [
    ['[a-c]+'],
    ['a[^b]*?b'],
    ['\\bab\\b', 'b@'],
    ['1-?1', '-1'],
    ['a{2,5}b|ab', '[ab]{3}'],
    ['\\d{3,}', '[^\\d]{2}'],
    ['é.', '.@'],
    ['a(?:b|bb)*@?', 'b'],
    ['^a+', 'a$'],
    ['ab{2,}', 'b+@?'],
    ['a.*b'],
    ['\\B.\\b'],
    ['[a1]*b?', '1?'],
    ['ab@', '\\b1-1'],
    ['[a1][b-]', '@[ab]{3,}'],
    ['é☃', 'ab\\.'],
  ]

  it('match a reference in JavaScript, and are the same wherever a stream is split', {
    timeout,
  }, () => {
    const random = new Random(seed)
    const end = Date.now() + seconds * 1000
    for (let round = 0; round < 400 || Date.now() < end; round++) {
      const patterns = random.pick(patternSets)
      const own = patterns.map((pattern, rule) => ({ pattern, replacement: `<${rule}>` }))
      const isPlain = random.below(2) === 0
      const rules = isPlain ? own : [...builtinRules, ...own].filter(() => random.below(3) > 0)
      using mask = maskOf(rules)
      for (let i = 0; i < 8; i++) {
        const alphabet = random.pick(alphabets)
        const text = `${randomText(random, alphabet, 50)}${random.below(2) ? random.pick(samples) : ''}${randomText(random, alphabet, 10)}`
        const bytes = Buffer.from(text)
        const whole = mask.apply(text)
        const where = `seed ${seed}: ${JSON.stringify({ rules, text })}`
        if (isPlain) expect(whole.text, where).toBe(expectedMask(patterns, text))
        for (let cut = 0; cut <= bytes.length; cut++) {
          const { text: cutText, count } = streamed(mask, bytes, [cut])
          expect({ text: cutText, count }, `${where} cut at ${cut}`).toEqual(whole)
        }
        const all = streamed(
          mask,
          bytes,
          Array.from({ length: bytes.length }, (_, at) => at),
        )
        expect(all.text, `${where} cut everywhere`).toBe(whole.text)
        expect(all.held).toBeLessThanOrEqual(mask.holdBytes ?? bytes.length)
      }
    }
  })

  it('are the same in pieces of the maximum length of one call', { timeout }, () => {
    const random = new Random(seed)
    const mask = maskOf([...builtinRules, { pattern: 'ab*1', replacement: '<own>' }])
    const text = Array.from(
      { length: 6000 },
      () => randomText(random, random.pick(alphabets), 40) + random.pick(samples),
    ).join(' ')
    const bytes = Buffer.from(text)
    const whole = mask.apply(text).text
    expect(whole.length).toBeGreaterThan(100_000)
    for (const size of [1 << 16, 65_535, 1000]) {
      const cuts = Array.from({ length: Math.floor(bytes.length / size) }, (_, i) => (i + 1) * size)
      expect(streamed(mask, bytes, cuts).text).toBe(whole)
    }
  })
})
