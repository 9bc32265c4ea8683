/** The usual patterns in RegExp for what the builtins find, and texts to mask. */
import { cpuNanoseconds } from '../harness.ts'

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

export const rules: readonly (readonly [RegExp, string | ((text: string) => string)])[] = [
  [/\b(?:\d{3}-\d{2}-\d{4}|\d{3} \d{2} \d{4}|\d{9})\b/g, '<Ssn>'],
  [/\b[1-6](?:[ -]?\d){12,18}\b/g, checked('<CreditCard>')],
  [/(?:\+1[ .-]?)?(?:\([2-9]\d{2}\) ?|\b[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}\b/g, '<PhoneNumber>'],
  [/[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b/g, '<Email>'],
  [/\b\d{3}[ -]\d{3}[ -]\d{3}\b/g, checked('<CaSin>')],
]
export const keyPattern = /\bsk-[A-Za-z0-9]{20,}/g

/** Masks with an engine that replaces as RegExp does. */
export const through = (from: typeof rules) => (text: string) => {
  let masked = text
  for (const [pattern, replacement] of from) masked = masked.replace(pattern, replacement as string)
  return masked
}
export const throughRegExp = through(rules)

export const sentence =
  'The quarterly report, due on Friday, says that support answered most requests within a day; ' +
  'two customers wrote again because the invoice did not name the project they had ordered. '
const personal =
  'Write to jane.doe@example.com or call (415) 555-2671; card 4111 1111 1111 1111, ssn 078-05-1120. '
const repeated = (text: string, length: number) =>
  text.repeat(Math.ceil(length / text.length)).slice(0, length)

const size = 100_000
export const maskTexts = {
  prose: repeated(sentence, size),
  matches: repeated(sentence.repeat(5) + personal, size),
  digits: repeated('12-- 34-5 6-789 1234 5678-9 00-1 ', size),
  ats: repeated('a@@b@.c@ab.@', size),
}

/** MB of text a second of this process's time. */
export function rateOf(work: (text: string) => unknown, text: string, times: number): number {
  const spent = cpuNanoseconds(() => {
    for (let i = 0; i < times; i++) work(text)
  })
  return (text.length * times * 1000) / spent
}
