/**
 * Claims: masking the five builtins, string to string, is at least ten times as fast as the same five
 * patterns in JavaScript's RegExp on prose; text full of digits, dashes and at signs is no slower than
 * theirs; a streamed delta of 64 bytes costs less than a microsecond.
 * The patterns of the RegExp side are the usual ones, with the Luhn check in a callback.
 */
import { compileMask, type Mask, type MaskRule } from '../../src/core/regex-mask.ts'
import { type BenchContext, cpuNanoseconds, interleave, type Row } from '../harness.ts'

const names = ['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin'] as const

function maskOf(rules: readonly MaskRule[]): Mask {
  const outcome = compileMask(rules)
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.mask
}

const builtins = maskOf(names.map((builtin) => ({ builtin, replacement: `<${builtin}>` })))
const keys = maskOf([{ pattern: '\\bsk-[A-Za-z0-9]{20,}', replacement: '<masked>' }])

/** Does the last digit of a number check the others? */
function hasLuhn(text: string): boolean {
  const digits = [...text].filter((character) => character >= '0' && character <= '9').reverse()
  const sum = digits.reduce((total, digit, index) => {
    const value = Number(digit)
    if (index % 2 === 0) return total + value
    return total + (value > 4 ? value * 2 - 9 : value * 2)
  }, 0)
  return sum % 10 === 0
}

const checked = (name: string) => (text: string) => (hasLuhn(text) ? name : text)

function throughRegExp(text: string): string {
  return text
    .replace(/\b(?:\d{3}-\d{2}-\d{4}|\d{3} \d{2} \d{4}|\d{9})\b/g, '<Ssn>')
    .replace(/\b[1-6](?:[ -]?\d){12,18}\b/g, checked('<CreditCard>'))
    .replace(
      /(?:\+1[ .-]?)?(?:\([2-9]\d{2}\) ?|\b[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}\b/g,
      '<PhoneNumber>',
    )
    .replace(/[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b/g, '<Email>')
    .replace(/\b\d{3}[ -]\d{3}[ -]\d{3}\b/g, checked('<CaSin>'))
}

const sentence =
  'The quarterly report, due on Friday, says that support answered most requests within a day; ' +
  'two customers wrote again because the invoice did not name the project they had ordered. '
const personal =
  'Write to jane.doe@example.com or call (415) 555-2671; card 4111 1111 1111 1111, ssn 078-05-1120. '
const repeated = (text: string, length: number) =>
  text.repeat(Math.ceil(length / text.length)).slice(0, length)

const size = 100_000
const texts = {
  prose: repeated(sentence, size),
  matches: repeated(sentence.repeat(5) + personal, size),
  digits: repeated('12-- 34-5 6-789 1234 5678-9 00-1 ', size),
  ats: repeated('a@@b@.c@ab.@', size),
}

/** MB of text a second of this process's time. */
function rateOf(work: (text: string) => unknown, text: string, times: number): number {
  const spent = cpuNanoseconds(() => {
    for (let i = 0; i < times; i++) work(text)
  })
  return (text.length * times * 1000) / spent
}

const delta = sentence.slice(0, 64)
const deltas = 20_000

/** Nanoseconds for each of many deltas of 64 bytes through one stream. */
function costOfDelta(): number {
  using stream = builtins.stream()
  const spent = cpuNanoseconds(() => {
    for (let i = 0; i < deltas; i++) stream.push(delta)
  })
  stream.end()
  return spent / deltas
}

export default async function mask({ quick, rounds }: BenchContext): Promise<Row[]> {
  const times = quick ? 50 : 400
  const samples = await interleave(rounds, {
    prose: () => rateOf((text) => builtins.apply(text), texts.prose, times * 4),
    'prose, RegExp': () => rateOf(throughRegExp, texts.prose, times / 5),
    matches: () => rateOf((text) => builtins.apply(text), texts.matches, times),
    'matches, RegExp': () => rateOf(throughRegExp, texts.matches, times / 5),
    digits: () => rateOf((text) => builtins.apply(text), texts.digits, times / 5),
    'digits, RegExp': () => rateOf(throughRegExp, texts.digits, times / 10),
    ats: () => rateOf((text) => builtins.apply(text), texts.ats, times / 5),
    'ats, RegExp': () => rateOf(throughRegExp, texts.ats, times / 10),
    key: () => rateOf((text) => keys.apply(text), texts.prose, times),
    'key, RegExp': () =>
      rateOf((text) => text.replace(/\bsk-[A-Za-z0-9]{20,}/g, '<masked>'), texts.prose, times),
    delta: costOfDelta,
  })
  const row = (id: keyof typeof samples, atLeast: number | undefined): Row => ({
    id: `core.mask.${id}`,
    unit: 'MB/s',
    own: samples[id],
    peer: { name: 'RegExp', samples: samples[`${id}, RegExp` as keyof typeof samples] },
    as: 'speedup',
    ...(atLeast !== undefined && { bound: { atLeast } }),
  })
  return [
    row('prose', 10),
    row('matches', 10),
    row('digits', undefined),
    row('ats', undefined),
    row('key', undefined),
    { id: 'core.mask.delta', unit: 'ns', own: samples.delta, bound: { atMost: 1000 } },
  ]
}
