/** Maps opt-in texts, which guards read only if their scope names the place: reasoning, and definitions and input of tools. */
import { isObject, type JsonObject, mapList, parseJson } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import type { Place } from './places.ts'
import { isLabel, type TextScope } from './text-fields.ts'
import { mapEntries, type OptInTexts } from './texts-map.ts'

/**
 * Maps a member at an opt-in place.
 * @throws LlmError if its text cannot be changed
 */
export function mapOptIn(
  holder: JsonObject,
  name: string,
  value: unknown,
  place: Place,
  optIn: OptInTexts,
  scope: TextScope,
): unknown {
  if (notText.has(name)) return value
  if (place === 'Reasoning') return mapReasoning(holder, name, value, optIn, scope)
  if (name === 'toolUse' && isObject(value)) {
    return mapEntries(value, (inner, item) =>
      inner === 'input' ? mapJson(item, place, optIn) : item,
    )
  }
  if (place === 'ToolDefinition' && isObject(value) && settingsWithSchemas.test(name)) {
    return mapEntries(value, (inner, item) =>
      /schema$/i.test(inner) ? mapJson(item, place, optIn) : item,
    )
  }
  if (place === 'ToolDefinition' && Array.isArray(value)) {
    return mapList(value, (tool) => mapJson(tool, place, optIn))
  }
  return mapJson(value, place, optIn)
}

const settingsWithSchemas = /^generation_?config$/i
/** Binary data, and settings of parts. */
const notText = new Set(['data', 'result', 'cache_control', 'size', 'quality', 'background'])

function mapJson(value: unknown, place: Place, optIn: OptInTexts): unknown {
  if (typeof value === 'string') return optIn.map(value, place)
  if (typeof value !== 'object' || value === null) return value
  const text = JSON.stringify(value)
  const mapped = optIn.map(text, place)
  if (mapped === text) return value
  const parsed = parseJson(mapped)
  if (typeof parsed === 'object' && parsed !== null) return parsed
  throw new LlmError(502, 'a guard has returned tool data that is not JSON')
}

function mapReasoning(
  holder: JsonObject,
  name: string,
  value: unknown,
  optIn: OptInTexts,
  scope: TextScope,
): unknown {
  const { isResponse } = scope
  const map = (item: unknown, inside: JsonObject, key: string): unknown => {
    if (typeof item === 'string') {
      return isLabel(inside, key, scope) || key === 'data' ? item : optIn.map(item, 'Reasoning')
    }
    if (Array.isArray(item)) return mapList(item, (one) => map(one, inside, key))
    if (!isObject(item)) return item
    return needUnsigned(
      item,
      mapEntries(item, (inner, one) => map(one, item, inner)),
      isResponse,
    )
  }
  const mapped = map(value, holder, name)
  if (mapped !== value) needUnsigned(holder, {}, isResponse)
  return mapped
}

/** Refuses a change of signed reasoning, because providers refuse it with another text. @throws LlmError */
function needUnsigned(before: JsonObject, after: JsonObject, isResponse: boolean): JsonObject {
  if (after !== before && isSigned(before)) throw signedReasoning(isResponse)
  return after
}

const isSigned = ({ signature }: JsonObject): boolean =>
  typeof signature === 'string' && signature !== ''

export const signedReasoning = (isResponse: boolean): LlmError =>
  new LlmError(isResponse ? 502 : 400, 'signed reasoning has a match, and cannot be masked')
