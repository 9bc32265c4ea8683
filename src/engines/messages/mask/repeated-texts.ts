/**
 * Masks text that a response contains outside of its messages. Log probabilities repeat every token,
 * so they are removed from guarded responses. Citations and annotations quote their sources, so their
 * texts are masked one by one.
 */
import { isObject, type JsonObject, mapList } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import { citationFields } from './text-fields.ts'
import { mapEntries, type TextsMap } from './texts-map.ts'

/** Fields with arguments and settings, which repeat no text. */
export const otherFields = new Set(
  'arguments input parameters input_schema schema tools usage metadata'.split(' '),
)
/** Fields that list the tokens of a response. */
const tokenFields = new Set(['logprobs', 'token_ids', 'logprobsResult'])
/** Fields of citations that are not texts. */
const nonTextFields = /^(?:type|ur[il]|encrypted_.*|(?:.*_)?id)$/
const maxDepth = 100

/**
 * Removes log probabilities from a response, or from an event of a streamed response, in any client format,
 * and maps the texts of citations. Returns the same object if nothing changes.
 * @throws LlmError 502 if the response is nested too deeply to be read.
 */
export function mapRepeatedTexts(response: JsonObject, map: TextsMap): JsonObject {
  return withoutRepeated(response, map, 0) as JsonObject
}

/** Keeps the texts of citations. */
export const keepTexts: TextsMap = (texts) => texts
/** Empties the texts of citations, for guards that change texts without seeing citations. */
export const emptyTexts: TextsMap = (texts) => texts.map(() => '')

function withoutRepeated(value: unknown, map: TextsMap, depth: number): unknown {
  checkDepth(depth)
  if (Array.isArray(value)) {
    return mapList(value, (item) => withoutRepeated(item, map, depth + 1))
  }
  if (!isObject(value)) return value
  return mapEntries(withoutOutputText(value), (name, item) => {
    if (tokenFields.has(name)) return withoutTokens(item)
    // A `context` that is a string belongs to a document and is masked with it.
    if (citationFields.has(name))
      return typeof item === 'string' ? item : mapTexts(item, map, depth + 1)
    return otherFields.has(name) ? item : withoutRepeated(item, map, depth + 1)
  })
}

/** Removes a field that repeats all output; SDKs assemble it themselves. */
function withoutOutputText(value: JsonObject): JsonObject {
  if (typeof value.output_text !== 'string') return value
  const { output_text: _repeated, ...rest } = value
  return rest
}

/** Returns an empty value of the type that SDKs expect. */
function withoutTokens(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? value : []
  return isObject(value) ? null : value
}

function mapTexts(value: unknown, map: TextsMap, depth: number): unknown {
  checkDepth(depth)
  if (typeof value === 'string') return map([value], false, 'Documents')[0] ?? ''
  if (Array.isArray(value)) return mapList(value, (item) => mapTexts(item, map, depth + 1))
  if (!isObject(value)) return value
  return mapEntries(value, (name, item) =>
    nonTextFields.test(name) && typeof item === 'string' ? item : mapTexts(item, map, depth + 1),
  )
}

function checkDepth(depth: number): void {
  if (depth > maxDepth)
    throw new LlmError(502, `a response deeper than ${maxDepth} cannot be guarded`)
}
