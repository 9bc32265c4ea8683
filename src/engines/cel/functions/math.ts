/** Functions for numbers. */
import { CelError } from '../error.ts'
import type { EvaluationFrame } from '../frame.ts'
import { isLess } from '../operators.ts'
import { type CelResult, CelUint, type CelValue, isList, toInt, toUint } from '../value.ts'
import { badValue, type CelFunction, type FunctionTable, fixed, wrongTypes } from './define.ts'

function isNumber(value: CelValue | undefined): value is bigint | number | CelUint {
  return typeof value === 'bigint' || typeof value === 'number' || value instanceof CelUint
}

/** Defines a function that returns the greatest or least of its arguments, or of one list. */
function extreme(name: string, wanted: 'greatest' | 'least'): CelFunction {
  const better = (frame: EvaluationFrame, a: CelValue, b: CelValue) => {
    const isBGreater = isLess(a, b, frame) === true
    return isBGreater === (wanted === 'greatest') ? b : a
  }
  return {
    style: 'function',
    min: 1,
    max: 32,
    applyAll: (frame, args) => {
      const [only] = args
      const values = args.length === 1 && only !== undefined && isList(only) ? only : args
      const [first, ...rest] = values
      if (first === undefined) return badValue(`${name} of nothing`)
      if (!values.every(isNumber)) return wrongTypes(name, ...values.slice(0, 4))
      return rest.reduce((best: CelValue, value) => better(frame, best, value), first)
    },
  }
}

function onDouble(name: string, apply: (value: number) => CelResult): CelFunction {
  return fixed('function', 1, (_, value) =>
    typeof value === 'number' ? apply(value) : wrongTypes(name, value),
  )
}

/** Rounds to the nearest integer; ties round away from zero. */
function round(value: number): number {
  return value < 0 ? -Math.floor(-value + 0.5) : Math.floor(value + 0.5)
}

function abs(value: CelValue): CelResult {
  if (typeof value === 'number') return Math.abs(value)
  if (typeof value === 'bigint') return toInt(value < 0n ? -value : value)
  return value instanceof CelUint ? value : wrongTypes('math.abs', value)
}

function sign(value: CelValue): CelResult {
  if (typeof value === 'number') return Math.sign(value)
  if (typeof value === 'bigint') return value > 0n ? 1n : value < 0n ? -1n : 0n
  if (value instanceof CelUint) return new CelUint(value.value > 0n ? 1n : 0n)
  return wrongTypes('math.sign', value)
}

function sqrt(value: CelValue): CelResult {
  return isNumber(value)
    ? Math.sqrt(Number(value instanceof CelUint ? value.value : value))
    : wrongTypes('math.sqrt', value)
}

function bitwise(name: string, apply: (a: bigint, b: bigint) => bigint): CelFunction {
  return fixed('function', 2, (_, a, b) => {
    if (typeof a === 'bigint' && typeof b === 'bigint') return BigInt.asIntN(64, apply(a, b))
    return a instanceof CelUint && b instanceof CelUint
      ? toUint(BigInt.asUintN(64, apply(a.value, b.value)))
      : wrongTypes(name, a, b)
  })
}

/** Defines a shift of 64 bits. A negative distance is an error; a distance of 64 or more gives 0. */
function shift(name: string, apply: (bits: bigint, by: bigint) => bigint): CelFunction {
  return fixed('function', 2, (_, value, by) => {
    const isInteger = typeof value === 'bigint' || value instanceof CelUint
    if (!isInteger || typeof by !== 'bigint') return wrongTypes(name, value, by)
    if (by < 0n) return new CelError('value', `${name} by a negative distance`)
    const bits = BigInt.asUintN(64, value instanceof CelUint ? value.value : value)
    const shifted = BigInt.asUintN(64, by > 63n ? 0n : apply(bits, by))
    return value instanceof CelUint ? new CelUint(shifted) : BigInt.asIntN(64, shifted)
  })
}

function bitNot(value: CelValue): CelResult {
  if (typeof value === 'bigint') return ~value
  return value instanceof CelUint
    ? new CelUint(BigInt.asUintN(64, ~value.value))
    : wrongTypes('math.bitNot', value)
}

export const mathFunctions: FunctionTable = {
  max: extreme('max', 'greatest'),
  min: extreme('min', 'least'),
  'math.greatest': extreme('math.greatest', 'greatest'),
  'math.least': extreme('math.least', 'least'),
  'math.ceil': onDouble('math.ceil', Math.ceil),
  'math.floor': onDouble('math.floor', Math.floor),
  'math.round': onDouble('math.round', round),
  'math.trunc': onDouble('math.trunc', Math.trunc),
  'math.isInf': onDouble('math.isInf', (value) => Math.abs(value) === Number.POSITIVE_INFINITY),
  'math.isNaN': onDouble('math.isNaN', Number.isNaN),
  'math.isFinite': onDouble('math.isFinite', Number.isFinite),
  'math.abs': fixed('function', 1, (_, value) => abs(value)),
  'math.sign': fixed('function', 1, (_, value) => sign(value)),
  'math.sqrt': fixed('function', 1, (_, value) => sqrt(value)),
  'math.bitAnd': bitwise('math.bitAnd', (a, b) => a & b),
  'math.bitOr': bitwise('math.bitOr', (a, b) => a | b),
  'math.bitXor': bitwise('math.bitXor', (a, b) => a ^ b),
  'math.bitNot': fixed('function', 1, (_, value) => bitNot(value)),
  'math.bitShiftLeft': shift('math.bitShiftLeft', (bits, by) => bits << by),
  'math.bitShiftRight': shift('math.bitShiftRight', (bits, by) => bits >> by),
}
