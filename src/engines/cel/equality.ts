import { isCelError } from './error.ts'
import { type EvaluationFrame, spend } from './frame.ts'
import { CelCidr, CelIp } from './ip.ts'
import { CelDuration, CelTimestamp } from './time.ts'
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
  mapSize,
  maxValueDepth,
  toKey,
  tooDeep,
} from './value.ts'

/** Compares values of any types. Numbers of different types are compared by value; see `equalsInteger`. */
export function isEqual(a: CelValue, b: CelValue, frame: EvaluationFrame, depth = 0): CelResult {
  if (a === b) return true
  if (typeof a !== 'object' && typeof b !== 'object') {
    return isNumber(a) && isNumber(b) && typeof a !== typeof b && Number(a) === Number(b)
  }
  if (a === null || b === null) return false
  if (a instanceof CelUint) return equalsInteger(b, a.value)
  if (b instanceof CelUint) return equalsInteger(a, b.value)
  if (isList(a)) return isList(b) && areListsEqual(a, b, frame, depth)
  if (isMap(a)) return isMap(b) && areMapsEqual(a, b, frame, depth)
  return isScalarEqual(a, b)
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

/** Compares a value with an integer. If the value is a double, the integer is rounded to a double first. */
function equalsInteger(value: CelValue, number: bigint): boolean {
  if (value instanceof CelUint) return value.value === number
  return typeof value === 'bigint' ? value === number : value === Number(number)
}

function isScalarEqual(a: CelValue, b: CelValue): boolean {
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0
  if (a instanceof CelTimestamp) {
    return b instanceof CelTimestamp && a.nanoseconds === b.nanoseconds
  }
  if (a instanceof CelDuration) return b instanceof CelDuration && a.nanoseconds === b.nanoseconds
  if (a instanceof CelType) return b instanceof CelType && a.name === b.name
  if (a instanceof CelIp) return b instanceof CelIp && a.family === b.family && a.value === b.value
  return a instanceof CelCidr && b instanceof CelCidr && a.toString() === b.toString()
}

function areListsEqual(
  a: readonly CelValue[],
  b: readonly CelValue[],
  frame: EvaluationFrame,
  depth: number,
): CelResult {
  if (a.length !== b.length) return false
  if (depth >= maxValueDepth) return tooDeep
  for (let i = 0; i < a.length; i++) {
    const same = spend(frame, 1) ?? isEqual(a[i] as CelValue, b[i] as CelValue, frame, depth + 1)
    if (same !== true) return same
  }
  return true
}

function areMapsEqual(
  a: CelMapValue,
  b: CelMapValue,
  frame: EvaluationFrame,
  depth: number,
): CelResult {
  if (mapSize(a) !== mapSize(b)) return false
  if (depth >= maxValueDepth) return tooDeep
  for (const key of mapKeys(a)) {
    const same = spend(frame, 1) ?? isEntryEqual(key, a, b, frame, depth)
    if (same !== true) return same
  }
  return true
}

function isEntryEqual(
  key: CelKey,
  a: CelMapValue,
  b: CelMapValue,
  frame: EvaluationFrame,
  depth: number,
): CelResult {
  const left = mapGet(a, key)
  const right = mapGet(b, key)
  if (left === undefined || right === undefined) return false
  if (isCelError(left)) return left
  if (isCelError(right)) return right
  return isEqual(left, right, frame, depth + 1)
}

/** Returns whether a value is an item of a list, or an error if the comparison fails. */
export function isItem(
  value: CelValue,
  list: readonly CelValue[],
  frame: EvaluationFrame,
): CelResult {
  const cost = spend(frame, list.length)
  if (cost !== undefined) return cost
  if (typeof value === 'string') return list.includes(value)
  for (const item of list) {
    const same = isEqual(value, item, frame)
    if (same !== false) return same
  }
  return false
}

/** Returns true if a value is a key of a map; false if its type cannot be a key. */
export function isKey(value: CelValue, map: CelMapValue): boolean {
  const key = toKey(value)
  return key !== undefined && mapGet(map, key) !== undefined
}
