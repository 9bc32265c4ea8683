/** Converts values to and from JSON. */
import { CelError, isCelError } from './error.ts'
import { type EvaluationFrame, spend, stepsOfLength } from './frame.ts'
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

/** Parses a JSON text. Every number becomes a double. */
export function parseJson(text: string): CelResult {
  try {
    return JSON.parse(text) as CelValue
  } catch {
    return new CelError('value', 'the text is not JSON')
  }
}

/** Maximum length of a JSON text to write: a small value whose parts are shared can have a very long text. */
const maxLength = 4 * 1024 * 1024

const tooLong = new CelError('limit', 'the JSON text is too long')

/**
 * Writes a value as JSON. Integers keep all their digits; bytes are base64; timestamps, durations and
 * addresses are strings; fields that are errors are left out. Returns an error for values without a JSON
 * form, such as NaN, and for values that nest too deeply or are too long.
 *
 * @param frame the evaluation whose budget is charged, if any
 */
export function writeJson(value: CelValue, frame?: EvaluationFrame): string | CelError {
  return new JsonWriter(frame).write(value, 0)
}

class JsonWriter {
  #charactersLeft = maxLength
  readonly #frame: EvaluationFrame | undefined

  constructor(frame: EvaluationFrame | undefined) {
    this.#frame = frame
  }

  write(value: CelValue, depth: number): string | CelError {
    if (depth > maxValueDepth) return tooDeep
    if (isList(value)) return this.#list(value, depth)
    if (isMap(value)) return this.#map(value, depth)
    const text = writeScalar(value)
    return isCelError(text) ? text : this.#take(text)
  }

  #take(text: string): string | CelError {
    this.#charactersLeft -= text.length + 1
    if (this.#charactersLeft < 0) return tooLong
    const steps = 1 + stepsOfLength(text.length)
    return (this.#frame === undefined ? undefined : spend(this.#frame, steps)) ?? text
  }

  #list(list: readonly CelValue[], depth: number): string | CelError {
    const parts: string[] = []
    for (const item of list) {
      const part = this.write(item, depth + 1)
      if (isCelError(part)) return part
      parts.push(part)
    }
    return this.#brackets('[', parts, ']')
  }

  #map(map: CelMapValue, depth: number): string | CelError {
    const parts: string[] = []
    for (const key of mapKeys(map)) {
      const value = mapGet(map, key)
      if (value === undefined || isCelError(value)) continue
      const name = this.#take(JSON.stringify(String(key)))
      const part = isCelError(name) ? name : this.write(value, depth + 1)
      if (isCelError(part)) return part
      parts.push(`${name}:${part}`)
    }
    return this.#brackets('{', parts, '}')
  }

  #brackets(open: string, parts: readonly string[], close: string): string | CelError {
    const cost = this.#take('')
    return isCelError(cost) ? cost : `${open}${parts.join(',')}${close}`
  }
}

function writeScalar(value: CelValue): string | CelError {
  if (value === null) return 'null'
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint' || typeof value === 'boolean') return value.toString()
  if (value instanceof CelUint) return value.value.toString()
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('base64'))
  if (typeof value === 'number') {
    return Number.isFinite(value)
      ? JSON.stringify(value)
      : new CelError('value', 'the number has no JSON form')
  }
  const text = toText(value)
  return isCelError(text) ? text : JSON.stringify(text)
}
