/** Functions for strings. Positions and lengths count code points. */
import { toPosition } from '../access.ts'
import { type EvaluationFrame, spend, stepsOfLength } from '../frame.ts'
import { matchesPattern, replacePattern } from '../patterns.ts'
import { type CelResult, CelUint, type CelValue, isList } from '../value.ts'
import {
  badValue,
  type FunctionTable,
  fixed,
  ofText,
  ofTexts,
  optionalFrom,
  wrongTypes,
} from './define.ts'
import { format } from './format.ts'

const outside = badValue('the position is outside the text')

/** Returns true if every code point is one UTF-16 unit, so that positions equal offsets. */
function isFlat(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if ((text.charCodeAt(i) & 0xf800) === 0xd800) return false
  }
  return true
}

/** Converts a position, which may be the end, to a UTF-16 offset; undefined if it is outside the text. */
function toOffset(text: string, position: number): number | undefined {
  if (!Number.isSafeInteger(position) || position < 0) return undefined
  if (isFlat(text)) return position <= text.length ? position : undefined
  let offset = 0
  for (let i = 0; i < position; i++) {
    const point = text.codePointAt(offset)
    if (point === undefined) return undefined
    offset += point > 0xffff ? 2 : 1
  }
  return offset
}

function toPositionIn(text: string, offset: number): bigint {
  return BigInt(offset < 0 || isFlat(text) ? offset : [...text.slice(0, offset)].length)
}

function integer(value: CelValue | undefined): number | undefined {
  return value === undefined || typeof value === 'number' || value instanceof CelUint
    ? undefined
    : toPosition(value)
}

function charAt(text: CelValue, at: CelValue): CelResult {
  const position = integer(at)
  if (typeof text !== 'string' || position === undefined) return wrongTypes('charAt', text, at)
  const offset = toOffset(text, position)
  if (offset === undefined) return outside
  const point = text.codePointAt(offset)
  return point === undefined ? '' : String.fromCodePoint(point)
}

function substring(text: CelValue, from: CelValue, to: CelValue | undefined): CelResult {
  const [first, last] = [integer(from), integer(to)]
  const isRight = typeof text === 'string' && first !== undefined
  if (!isRight || (to !== undefined && last === undefined)) {
    return wrongTypes('substring', text, from, to)
  }
  const start = toOffset(text, first)
  const end = last === undefined ? text.length : toOffset(text, last)
  return start === undefined || end === undefined || start > end ? outside : text.slice(start, end)
}

function indexIn(text: CelValue, part: CelValue, from: CelValue | undefined): CelResult {
  const first = from === undefined ? 0 : integer(from)
  if (typeof text !== 'string' || typeof part !== 'string' || first === undefined) {
    return wrongTypes('indexOf', text, part, from)
  }
  const offset = toOffset(text, first)
  return offset === undefined ? outside : toPositionIn(text, text.indexOf(part, offset))
}

function lastIndexIn(text: CelValue, part: CelValue, from: CelValue | undefined): CelResult {
  const last = integer(from)
  const isRight = typeof text === 'string' && typeof part === 'string'
  if (!isRight || (from !== undefined && last === undefined)) {
    return wrongTypes('lastIndexOf', text, part, from)
  }
  const offset = last === undefined ? text.length : toOffset(text, last)
  return offset === undefined ? outside : toPositionIn(text, text.lastIndexOf(part, offset))
}

function replace(frame: EvaluationFrame, args: readonly CelValue[]): CelResult {
  const [text, part, by, count] = args
  const limit = count === undefined ? -1 : integer(count)
  if (typeof text !== 'string' || typeof part !== 'string' || typeof by !== 'string') {
    return wrongTypes('replace', ...args)
  }
  if (limit === undefined) return wrongTypes('replace', ...args)
  const pieces = text.split(part)
  const occurrences = part === '' ? pieces.length + 1 : pieces.length - 1
  const times = limit < 0 ? occurrences : Math.min(limit, occurrences)
  const cost = spend(frame, stepsOfLength(text.length + times * by.length))
  if (cost !== undefined) return cost
  if (limit < 0 && part !== '') return pieces.join(by)
  return part === '' ? insertEverywhere(text, by, times) : replaceFirst(pieces, part, by, times)
}

function replaceFirst(pieces: readonly string[], part: string, by: string, times: number): string {
  const head = pieces.slice(0, times + 1).join(by)
  const tail = pieces.slice(times + 1)
  return [head, ...tail].join(part)
}

function insertEverywhere(text: string, by: string, times: number): string {
  const points = [...text]
  let result = ''
  for (let i = 0; i <= points.length; i++) result += (i < times ? by : '') + (points[i] ?? '')
  return result
}

function split(frame: EvaluationFrame, args: readonly CelValue[]): CelResult {
  const [text, separator, count] = args
  const limit = count === undefined ? -1 : integer(count)
  if (typeof text !== 'string' || typeof separator !== 'string' || limit === undefined) {
    return wrongTypes('split', ...args)
  }
  const cost = spend(frame, stepsOfLength(8 * text.length))
  if (cost !== undefined) return cost
  if (limit === 0) return []
  const pieces = separator === '' ? [...text] : text.split(separator)
  if (limit < 0 || pieces.length <= limit) return pieces
  return [...pieces.slice(0, limit - 1), pieces.slice(limit - 1).join(separator)]
}

function join(frame: EvaluationFrame, list: CelValue, separator: CelValue | undefined): CelResult {
  const isRight = isList(list) && (separator === undefined || typeof separator === 'string')
  if (!isRight || !list.every((item) => typeof item === 'string')) {
    return wrongTypes('join', list, separator)
  }
  const between = separator ?? ''
  const length = list.reduce((sum, item) => sum + (item as string).length + between.length, 0)
  return spend(frame, stepsOfLength(length)) ?? list.join(between)
}

/** Matches Unicode white space, as Go and Rust define it. */
const space = '[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]'
const leadingSpace = new RegExp(`^${space}+`)

function trim(text: string): string {
  const start = leadingSpace.exec(text)?.[0].length ?? 0
  let end = text.length
  while (end > start && leadingSpace.test(text.charAt(end - 1))) end--
  return text.slice(start, end)
}

const lower = (text: string) => text.replace(/[A-Z]+/g, (part) => part.toLowerCase())
const upper = (text: string) => text.replace(/[a-z]+/g, (part) => part.toUpperCase())

const quoted: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
}

/** Quotes a string as a literal of CEL. */
function quote(text: string): string {
  const inner = text.toWellFormed().replace(/["\\]|\p{Cc}/gu, (char) => quoted[char] ?? char)
  return `"${inner}"`
}

export const stringFunctions: FunctionTable = {
  'strings.quote': ofText('strings.quote', 'function', quote),
  contains: ofTexts('contains', 'method', (text, part, frame) => {
    return spend(frame, stepsOfLength(text.length)) ?? text.includes(part)
  }),
  startsWith: ofTexts('startsWith', 'method', (text, part) => text.startsWith(part)),
  endsWith: ofTexts('endsWith', 'method', (text, part) => text.endsWith(part)),
  matches: ofTexts('matches', 'either', (text, pattern, frame) =>
    matchesPattern(frame, text, pattern),
  ),
  regexReplace: fixed('either', 3, (frame, text, pattern, by) =>
    typeof text === 'string' && typeof pattern === 'string' && typeof by === 'string'
      ? replacePattern(frame, text, pattern, by)
      : wrongTypes('regexReplace', text, pattern, by),
  ),
  format: fixed('method', 2, format),
  charAt: fixed('method', 2, (_, text, at) => charAt(text, at)),
  substring: optionalFrom('method', 2, 3, (_, text, from, to) => substring(text, from, to)),
  indexOf: optionalFrom('method', 2, 3, (_, text, part, from) => indexIn(text, part, from)),
  lastIndexOf: optionalFrom('method', 2, 3, (_, text, part, from) => lastIndexIn(text, part, from)),
  replace: { style: 'method', min: 3, max: 4, applyAll: replace },
  split: { style: 'method', min: 2, max: 3, applyAll: split },
  join: optionalFrom('method', 1, 2, join),
  lowerAscii: ofText('lowerAscii', 'method', lower),
  upperAscii: ofText('upperAscii', 'method', upper),
  trim: ofText('trim', 'method', trim),
  reverse: ofText('reverse', 'method', (text) => [...text].reverse().join('')),
  stripPrefix: ofTexts('stripPrefix', 'method', (text, part) =>
    text.startsWith(part) ? text.slice(part.length) : text,
  ),
  stripSuffix: ofTexts('stripSuffix', 'method', (text, part) =>
    text.endsWith(part) ? text.slice(0, text.length - part.length) : text,
  ),
}
