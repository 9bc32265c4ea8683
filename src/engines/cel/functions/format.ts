/** The function `format`: replaces clauses such as `%s` and `%.2f` in a text by values from a list. */
import { isCelError } from '../error.ts'
import { type EvaluationFrame, spend, stepsOfLength } from '../frame.ts'
import {
  type CelKey,
  type CelMapValue,
  type CelResult,
  CelType,
  CelUint,
  type CelValue,
  isList,
  isMap,
  mapGet,
  mapKeys,
  maxValueDepth,
  tooDeep,
} from '../value.ts'
import { toText } from './convert.ts'
import { badValue, wrongTypes } from './define.ts'

const defaultPrecision = 6
/** Maximum number of digits after the point, which JavaScript still writes exactly. */
const maxPrecision = 100

const clause = /%(?:%|(?:\.(\d{1,3}))?([a-zA-Z]))|%/g

export function format(frame: EvaluationFrame, text: CelValue, values: CelValue): CelResult {
  if (typeof text !== 'string' || !isList(values)) return wrongTypes('format', text, values)
  const pieces: string[] = []
  let [next, end] = [0, 0]
  for (const match of text.matchAll(clause)) {
    const [whole, precision, letter] = match
    pieces.push(text.slice(end, match.index))
    end = match.index + whole.length
    if (whole === '%%') {
      pieces.push('%')
      continue
    }
    const value = values[next++]
    if (letter === undefined) return badValue(`format: "%" without a clause at ${match.index}`)
    if (value === undefined) return badValue(`format: there is no value for ${whole}`)
    const digits = precision === undefined ? defaultPrecision : Number(precision)
    const result = formatValue(frame, letter, value, digits)
    if (typeof result !== 'string') return result
    const cost = spend(frame, 1 + stepsOfLength(result.length))
    if (cost !== undefined) return cost
    pieces.push(result)
  }
  return spend(frame, stepsOfLength(text.length)) ?? pieces.join('') + text.slice(end)
}

function formatValue(
  frame: EvaluationFrame,
  letter: string,
  value: CelValue,
  digits: number,
): CelResult {
  switch (letter) {
    case 's':
      return readable(frame, value)
    case 'd':
      return decimal(value)
    case 'f':
    case 'e':
      return rounded(letter, value, digits)
    case 'b':
      return typeof value === 'boolean' ? `${Number(value)}` : inBase(2, letter, value)
    case 'o':
      return inBase(8, letter, value)
    case 'x':
      return hexadecimal(letter, value)
    case 'X': {
      const text = hexadecimal(letter, value)
      return typeof text === 'string' ? text.toUpperCase() : text
    }
    default:
      return badValue(`format: unknown clause %${letter}`)
  }
}

/** Formats a value of any type for `%s`. Maps are sorted by the text of their keys. */
function readable(frame: EvaluationFrame, value: CelValue, depth = 0): CelResult {
  if (depth >= maxValueDepth) return tooDeep
  if (value === null) return 'null'
  if (typeof value === 'number') return `${value}`
  if (value instanceof CelType) return value.name
  if (isMap(value)) return readableMap(frame, value, depth)
  if (!isList(value)) return toText(value)
  const items: string[] = []
  for (const item of value) {
    const text = spend(frame, 1) ?? readable(frame, item, depth + 1)
    if (typeof text !== 'string') return text
    items.push(text)
  }
  return `[${items.join(', ')}]`
}

function readableMap(frame: EvaluationFrame, map: CelMapValue, depth: number): CelResult {
  const entries: [string, string][] = []
  for (const key of mapKeys(map)) {
    const text = spend(frame, 1) ?? readableEntry(frame, map, key, depth)
    if (typeof text !== 'string') return text
    entries.push([`${key}`, text])
  }
  entries.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, text]) => `${key}: ${text}`).join(', ')}}`
}

function readableEntry(
  frame: EvaluationFrame,
  map: CelMapValue,
  key: CelKey,
  depth: number,
): CelResult {
  const value = mapGet(map, key)
  if (value === undefined || isCelError(value)) return value ?? 'null'
  return readable(frame, value, depth + 1)
}

/** Converts a value to an integer. Whole doubles are accepted, because every number in JSON is a double. */
function toInteger(value: CelValue): bigint | undefined {
  if (typeof value === 'bigint') return value
  if (value instanceof CelUint) return value.value
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : undefined
}

function decimal(value: CelValue): CelResult {
  if (typeof value === 'number' && !Number.isFinite(value)) return `${value}`
  return inBase(10, 'd', value)
}

function inBase(base: number, letter: string, value: CelValue): CelResult {
  return toInteger(value)?.toString(base) ?? wrongTypes(`%${letter}`, value)
}

function hexadecimal(letter: string, value: CelValue): CelResult {
  if (typeof value === 'string') return Buffer.from(value).toString('hex')
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  return inBase(16, letter, value)
}

/** Formats `%f` and `%e`, rounded half to even as in C and Go. */
function rounded(letter: 'f' | 'e', value: CelValue, digits: number): CelResult {
  const number = typeof value === 'number' ? value : toInteger(value)
  if (number === undefined) return wrongTypes(`%${letter}`, value)
  if (digits > maxPrecision) return badValue(`format: at most ${maxPrecision} digits after a point`)
  const double = Number(number)
  if (!Number.isFinite(double)) return `${double}`
  const sign = double < 0 || Object.is(double, -0) ? '-' : ''
  const magnitude = Math.abs(double)
  return sign + (letter === 'f' ? fixedPoint(magnitude, digits) : scientific(magnitude, digits))
}

function fixedPoint(magnitude: number, digits: number): string {
  // From 1e21 on, every double is an integer, and `toFixed` does not write it digit by digit.
  const exact =
    magnitude < 1e21
      ? magnitude.toFixed(maxPrecision)
      : `${BigInt(magnitude)}.${'0'.repeat(maxPrecision)}`
  return withPoint(roundTo(exact, digits), digits)
}

function scientific(magnitude: number, digits: number): string {
  const [mantissa = '', power] = magnitude.toExponential(maxPrecision).split('e')
  const kept = roundTo(mantissa, digits)
  const isCarried = kept >= 10n ** BigInt(digits + 1)
  const exponent = Number(power) + Number(isCarried)
  const text = withPoint(isCarried ? kept / 10n : kept, digits)
  return `${text}e${exponent < 0 ? '-' : '+'}${`${Math.abs(exponent)}`.padStart(2, '0')}`
}

/** Rounds a number with `maxPrecision` decimals to `digits` decimals; returns it without the point. */
function roundTo(exact: string, digits: number): bigint {
  const number = BigInt(exact.replace('.', ''))
  const unit = 10n ** BigInt(maxPrecision - digits)
  const [kept, rest] = [number / unit, number % unit]
  const isUp = rest * 2n > unit || (rest * 2n === unit && kept % 2n === 1n)
  return isUp ? kept + 1n : kept
}

function withPoint(number: bigint, digits: number): string {
  const text = `${number}`.padStart(digits + 1, '0')
  return digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`
}
