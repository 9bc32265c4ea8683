/** The conversion functions of CEL types, and `size`. */
import { type CelError, isCelError } from '../error.ts'
import { CelCidr, CelIp } from '../ip.ts'
import { CelDuration, CelTimestamp, makeTimestamp, parseDuration, parseTimestamp } from '../time.ts'
import {
  type CelResult,
  CelType,
  CelUint,
  type CelValue,
  isList,
  isMap,
  mapSize,
  toInt,
  toUint,
  typeName,
} from '../value.ts'
import { badValue, type FunctionTable, fixed, wrongTypes } from './define.ts'

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes UTF-8; returns an error if the bytes are not UTF-8. */
function decodeUtf8(bytes: Uint8Array): string | CelError {
  try {
    return decoder.decode(bytes)
  } catch {
    return badValue('the bytes are not UTF-8')
  }
}

/** Returns a string, or decodes bytes of UTF-8; undefined for any other value. */
export function textOf(value: CelValue | undefined): string | undefined {
  if (typeof value === 'string') return value
  const text = value instanceof Uint8Array ? decodeUtf8(value) : undefined
  return typeof text === 'string' ? text : undefined
}

/** Counts the code points of a text. */
function codePoints(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length - 1; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      count--
      i++
    }
  }
  return count
}

function size(value: CelValue): CelResult {
  if (typeof value === 'string') return BigInt(codePoints(value))
  if (isList(value) || value instanceof Uint8Array) return BigInt(value.length)
  return isMap(value) ? BigInt(mapSize(value)) : wrongTypes('size', value)
}

/** Converts a value to a string, as `string(x)` does. */
export function toText(value: CelValue): CelResult {
  if (typeof value === 'string') return value
  if (typeof value === 'bigint' || typeof value === 'boolean') return value.toString()
  if (typeof value === 'number') return doubleText(value)
  if (value instanceof CelUint) return value.value.toString()
  if (value instanceof Uint8Array) return decodeUtf8(value)
  const hasText =
    value instanceof CelTimestamp ||
    value instanceof CelDuration ||
    value instanceof CelIp ||
    value instanceof CelCidr
  return hasText ? value.toString() : wrongTypes('string', value)
}

function doubleText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  if (value === Number.NEGATIVE_INFINITY) return '-Inf'
  return value.toString()
}

function fromDouble(value: number, convert: (integer: bigint) => CelResult): CelResult {
  if (!Number.isFinite(value)) return convert(2n ** 70n)
  const result = convert(BigInt(Math.trunc(value)))
  // The largest int and uint round to these doubles, which are therefore treated as overflows.
  return value === 2 ** 63 || value === 2 ** 64 ? convert(2n ** 70n) : result
}

function parseInteger(text: string, convert: (integer: bigint) => CelResult): CelResult {
  if (!/^[+-]?\d{1,30}$/.test(text)) return badValue('the text is not an integer')
  return convert(BigInt(text.replace(/^\+/, '')))
}

function int(value: CelValue): CelResult {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number') {
    return value === -(2 ** 63) ? toInt(2n ** 70n) : fromDouble(value, toInt)
  }
  if (typeof value === 'string') return parseInteger(value, toInt)
  if (value instanceof CelUint) return toInt(value.value)
  if (value instanceof CelTimestamp) {
    return BigInt(Math.floor(value.milliseconds / 1000))
  }
  return wrongTypes('int', value)
}

function uint(value: CelValue): CelResult {
  if (value instanceof CelUint) return value
  if (typeof value === 'bigint') return toUint(value)
  if (typeof value === 'number') return value < 0 ? toUint(-1n) : fromDouble(value, toUint)
  return typeof value === 'string' ? parseInteger(value, toUint) : wrongTypes('uint', value)
}

const specialDoubles: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '+Infinity': Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
  Inf: Number.POSITIVE_INFINITY,
  '+Inf': Number.POSITIVE_INFINITY,
  '-Inf': Number.NEGATIVE_INFINITY,
}

function parseDouble(text: string): CelResult {
  const special = Object.hasOwn(specialDoubles, text) ? specialDoubles[text] : undefined
  if (special !== undefined) return special
  const isNumber = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(text)
  return isNumber ? Number(text) : badValue('the text is not a number')
}

function double(value: CelValue): CelResult {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof CelUint) return Number(value.value)
  return typeof value === 'string' ? parseDouble(value) : wrongTypes('double', value)
}

const bools: Readonly<Record<string, boolean>> = {
  '1': true,
  t: true,
  T: true,
  true: true,
  TRUE: true,
  True: true,
  '0': false,
  f: false,
  F: false,
  false: false,
  FALSE: false,
  False: false,
}

function bool(value: CelValue): CelResult {
  if (typeof value === 'boolean') return value
  if (typeof value !== 'string') return wrongTypes('bool', value)
  const found = Object.hasOwn(bools, value) ? bools[value] : undefined
  return found ?? badValue('the text is not a bool')
}

function bytes(value: CelValue): CelResult {
  if (value instanceof Uint8Array) return value
  return typeof value === 'string' ? Buffer.from(value) : wrongTypes('bytes', value)
}

function timestamp(value: CelValue): CelResult {
  if (value instanceof CelTimestamp) return value
  if (typeof value === 'string') return parseTimestamp(value)
  return typeof value === 'bigint'
    ? makeTimestamp(value * 1_000_000_000n)
    : wrongTypes('timestamp', value)
}

function duration(value: CelValue): CelResult {
  if (value instanceof CelDuration) return value
  return typeof value === 'string' ? parseDuration(value) : wrongTypes('duration', value)
}

/** Type names that are values in expressions. */
export const typeNames: ReadonlySet<string> = new Set([
  'int',
  'uint',
  'double',
  'bool',
  'string',
  'bytes',
  'list',
  'map',
  'null_type',
  'type',
])

export const conversions: FunctionTable = {
  size: fixed('either', 1, (_, value) => size(value)),
  int: fixed('function', 1, (_, value) => int(value)),
  uint: fixed('function', 1, (_, value) => uint(value)),
  double: fixed('function', 1, (_, value) => double(value)),
  string: fixed('function', 1, (_, value) => toText(value)),
  bytes: fixed('function', 1, (_, value) => bytes(value)),
  bool: fixed('function', 1, (_, value) => bool(value)),
  timestamp: fixed('function', 1, (_, value) => timestamp(value)),
  duration: fixed('function', 1, (_, value) => duration(value)),
  dyn: fixed('function', 1, (_, value) => value),
  type: fixed('function', 1, (_, value) =>
    isCelError(value) ? value : new CelType(typeName(value)),
  ),
}
