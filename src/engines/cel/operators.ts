/** Arithmetic and comparison operators. */
import { CelError, noOverload } from './error.ts'
import { type EvaluationFrame, spend, stepsOfLength } from './frame.ts'
import { CelDuration, CelTimestamp, makeDuration, makeTimestamp } from './time.ts'
import { type CelResult, CelUint, type CelValue, isList, toInt, toUint, typeName } from './value.ts'

export type Operator = (a: CelValue, b: CelValue, frame: EvaluationFrame) => CelResult

function unsupported(operator: string, a: CelValue, b: CelValue): CelError {
  return noOverload(operator, typeName(a), typeName(b))
}

/** Operations on an int and a double give a double, because numbers in JSON are doubles. */
function asDouble(value: CelValue): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  return value instanceof CelUint ? Number(value.value) : undefined
}

type OnDoubles = (a: number, b: number) => CelResult

function mixed(operator: string, a: CelValue, b: CelValue, onDoubles: OnDoubles): CelResult {
  if (typeof a === 'number' || typeof b === 'number') {
    const left = asDouble(a)
    const right = asDouble(b)
    if (left !== undefined && right !== undefined) return onDoubles(left, right)
  }
  return unsupported(operator, a, b)
}

const plus: OnDoubles = (a, b) => a + b
const minus: OnDoubles = (a, b) => a - b
const times: OnDoubles = (a, b) => a * b
const quotient: OnDoubles = (a, b) => a / b

export const add: Operator = (a, b, frame) => {
  if (typeof a === 'string' && typeof b === 'string') {
    return spend(frame, stepsOfLength(a.length + b.length)) ?? a + b
  }
  if (typeof a === 'bigint' && typeof b === 'bigint') return toInt(a + b)
  if (typeof a === 'number' || typeof b === 'number') return mixed('+', a, b, plus)
  if (a instanceof CelUint && b instanceof CelUint) return toUint(a.value + b.value)
  if (isList(a) && isList(b)) {
    return spend(frame, stepsOfLength(8 * (a.length + b.length))) ?? [...a, ...b]
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    return spend(frame, stepsOfLength(a.length + b.length)) ?? Buffer.concat([a, b])
  }
  return addTimes(a, b) ?? unsupported('+', a, b)
}

function addTimes(a: CelValue, b: CelValue): CelResult | undefined {
  if (a instanceof CelDuration) {
    if (b instanceof CelDuration) return makeDuration(a.nanoseconds + b.nanoseconds)
    if (b instanceof CelTimestamp) return makeTimestamp(a.nanoseconds + b.nanoseconds)
  }
  if (a instanceof CelTimestamp && b instanceof CelDuration) {
    return makeTimestamp(a.nanoseconds + b.nanoseconds)
  }
  return undefined
}

export const subtract: Operator = (a, b) => {
  if (typeof a === 'bigint' && typeof b === 'bigint') return toInt(a - b)
  if (typeof a === 'number' || typeof b === 'number') return mixed('-', a, b, minus)
  if (a instanceof CelUint && b instanceof CelUint) return toUint(a.value - b.value)
  return subtractTimes(a, b) ?? unsupported('-', a, b)
}

function subtractTimes(a: CelValue, b: CelValue): CelResult | undefined {
  if (a instanceof CelTimestamp) {
    if (b instanceof CelTimestamp) return makeDuration(a.nanoseconds - b.nanoseconds)
    if (b instanceof CelDuration) return makeTimestamp(a.nanoseconds - b.nanoseconds)
  }
  if (a instanceof CelDuration && b instanceof CelDuration) {
    return makeDuration(a.nanoseconds - b.nanoseconds)
  }
  return undefined
}

export const multiply: Operator = (a, b) => {
  if (typeof a === 'bigint' && typeof b === 'bigint') return toInt(a * b)
  if (a instanceof CelUint && b instanceof CelUint) return toUint(a.value * b.value)
  return mixed('*', a, b, times)
}

const divisionByZero = new CelError('value', 'division by zero')

/** Truncates integers; follows IEEE 754 for doubles. */
export const divide: Operator = (a, b) => {
  if (typeof a === 'bigint' && typeof b === 'bigint')
    return b === 0n ? divisionByZero : toInt(a / b)
  if (a instanceof CelUint && b instanceof CelUint) {
    return b.value === 0n ? divisionByZero : toUint(a.value / b.value)
  }
  return mixed('/', a, b, quotient)
}

/** The result has the sign of the dividend. Whole doubles are accepted, because JSON has no ints. */
export const remainder: Operator = (a, b) => {
  if (typeof a === 'bigint' && typeof b === 'bigint') return b === 0n ? divisionByZero : a % b
  if (a instanceof CelUint && b instanceof CelUint) {
    return b.value === 0n ? divisionByZero : toUint(a.value % b.value)
  }
  return mixed('%', a, b, (left, right) => {
    if (right === 0) return divisionByZero
    return Number.isInteger(left) && Number.isInteger(right) ? left % right : unsupported('%', a, b)
  })
}

export function negate(value: CelValue): CelResult {
  if (typeof value === 'number') return -value
  if (typeof value === 'bigint') return toInt(-value)
  if (value instanceof CelDuration) return makeDuration(-value.nanoseconds)
  return noOverload('-', typeName(value))
}

/** Converts a value to a number by which values of its type are ordered. */
function ordered(value: CelValue): Ordered | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return value
  if (value instanceof CelUint) return value.value
  if (typeof value === 'boolean') return Number(value)
  return value instanceof CelTimestamp || value instanceof CelDuration
    ? value.nanoseconds
    : undefined
}

/** Returns true if two values can be compared: they have the same type, or both are numbers. */
function isComparable(a: CelValue, b: CelValue): boolean {
  const [left, right] = [typeName(a), typeName(b)]
  const isNumber = (name: string) => name === 'int' || name === 'uint' || name === 'double'
  return left === right || (isNumber(left) && isNumber(right))
}

/** If an int and a double are compared, the int is rounded to a double, as in other implementations. */
type Ordered = number | bigint
const isBelow = (a: Ordered, b: Ordered) => (typeof a === typeof b ? a < b : Number(a) < Number(b))
const isAtMost = (a: Ordered, b: Ordered) =>
  typeof a === typeof b ? a <= b : Number(a) <= Number(b)

function comparison(name: string, isOrdered: (a: Ordered, b: Ordered) => boolean): Operator {
  return (a, b) => {
    if (typeof a === 'number' || typeof a === 'bigint') {
      if (typeof b === 'number' || typeof b === 'bigint') return isOrdered(a, b)
    }
    if (typeof a === 'string' && typeof b === 'string') return isOrdered(compareText(a, b), 0)
    if (a instanceof Uint8Array && b instanceof Uint8Array) {
      return isOrdered(Buffer.compare(a, b), 0)
    }
    const [left, right] = [ordered(a), ordered(b)]
    if (left === undefined || right === undefined || !isComparable(a, b)) {
      return unsupported(name, a, b)
    }
    return isOrdered(left, right)
  }
}

export const isLess = comparison('<', isBelow)
export const isLessOrEqual = comparison('<=', isAtMost)

/** Compares by code point. JavaScript compares UTF-16 units, which differs above U+FFFF. */
function compareText(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  let i = 0
  while (i < length && a.charCodeAt(i) === b.charCodeAt(i)) i++
  if (i === length) return a.length - b.length
  const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)]
  const isSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdfff
  if (isSurrogate(left) !== isSurrogate(right)) return isSurrogate(left) ? 1 : -1
  return left - right
}
