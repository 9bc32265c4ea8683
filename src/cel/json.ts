/** Values to and from JSON. */
import { CelError, isCelError } from './error.ts'
import { toText } from './functions/convert.ts'
import {
  type CelMapValue,
  type CelResult,
  CelUint,
  type CelValue,
  isList,
  isMap,
  mapGet,
  mapKeys,
  maxValueDepth,
  tooDeep,
} from './value.ts'

/** The value of a JSON text; every number becomes a double. */
export function parseJson(text: string): CelResult {
  try {
    return JSON.parse(text) as CelValue
  } catch {
    return new CelError('value', 'the text is no JSON')
  }
}

/**
 * The JSON text of a value. Integers keep all their digits; bytes are base64; timestamps, durations
 * and addresses their texts. An error for what JSON has no form for, such as NaN.
 */
export function writeJson(value: CelValue, depth = 0): string | CelError {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'bigint':
    case 'boolean':
      return value.toString()
    case 'number':
      return Number.isFinite(value)
        ? JSON.stringify(value)
        : new CelError('value', 'the number has no JSON form')
    default:
      if (depth > maxValueDepth) return tooDeep
      return value === null ? 'null' : writeObject(value, depth)
  }
}

function writeObject(value: CelValue & object, depth: number): string | CelError {
  if (value instanceof CelUint) return value.value.toString()
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('base64'))
  if (isList(value)) return writeList(value, depth)
  if (isMap(value)) return writeMap(value, depth)
  const text = toText(value)
  return isCelError(text) ? text : JSON.stringify(text)
}

function writeList(list: readonly CelValue[], depth: number): string | CelError {
  const parts: string[] = []
  for (const item of list) {
    const part = writeJson(item, depth + 1)
    if (isCelError(part)) return part
    parts.push(part)
  }
  return `[${parts.join(',')}]`
}

/** Fields that cannot be had are left out. */
function writeMap(map: CelMapValue, depth: number): string | CelError {
  const parts: string[] = []
  for (const key of mapKeys(map)) {
    const value = mapGet(map, key)
    if (value === undefined || isCelError(value)) continue
    const part = writeJson(value, depth + 1)
    if (isCelError(part)) return part
    parts.push(`${JSON.stringify(String(key))}:${part}`)
  }
  return `{${parts.join(',')}}`
}
