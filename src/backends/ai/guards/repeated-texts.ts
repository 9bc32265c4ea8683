/**
 * Masks text that an answer contains outside of its messages. Log probabilities repeat every token,
 * so they are removed from guarded answers. Citations and annotations quote their sources, so their
 * texts are masked one by one.
 */
import { isObject, type JsonObject } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import type { TextsMap } from './texts.ts'

/** Fields of answers and events that lead to messages, parts and choices. */
const containers = new Set([
  'choices',
  'content',
  'content_block',
  'delta',
  'item',
  'message',
  'output',
  'part',
  'response',
])
/** Fields whose texts quote or name sources. `context` is where vendorB puts citations. */
const citing = new Set([
  'annotation',
  'annotations',
  'citation',
  'citations',
  'context',
  'search_results',
])
/** Fields that hold the tokens of an answer. */
const tokens = new Set(['logprobs', 'token_ids'])
/** Fields of citations that are no text. */
const notText = /^(?:type|ur[il]|encrypted_.*|(?:.*_)?id)$/
const deepest = 100

/**
 * An answer, or an event of a streamed one, in any client format: without log probabilities, and with
 * the texts of citations changed by `map`. An unchanged answer is the same object.
 * @throws LlmError 502 if the answer is nested too deeply to be read.
 */
export function mapRepeatedTexts(answer: JsonObject, map: TextsMap): JsonObject {
  return withoutRepeated(answer, map, 0) as JsonObject
}

/** Leaves the texts of citations as they are. */
export const keepTexts: TextsMap = (texts) => texts
/** For guards that change texts without being shown those of citations. */
export const emptyTexts: TextsMap = (texts) => texts.map(() => '')

function withoutRepeated(value: unknown, map: TextsMap, depth: number): unknown {
  checkDepth(depth)
  if (Array.isArray(value)) {
    return mapItems(value, (item) => withoutRepeated(item, map, depth + 1))
  }
  if (!isObject(value)) return value
  return mapEntries(withoutOutputText(value), (name, item) => {
    if (tokens.has(name)) return withoutTokens(item)
    // The context of a document is a text, which is masked with it.
    if (citing.has(name)) return typeof item === 'string' ? item : mapTexts(item, map, depth + 1)
    return containers.has(name) ? withoutRepeated(item, map, depth + 1) : item
  })
}

/** The field repeats all output; SDKs put it together themselves. */
function withoutOutputText(value: JsonObject): JsonObject {
  if (typeof value.output_text !== 'string') return value
  const { output_text: _repeated, ...rest } = value
  return rest
}

/** Empty in the form that SDKs expect. */
function withoutTokens(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? value : []
  return isObject(value) ? null : value
}

function mapTexts(value: unknown, map: TextsMap, depth: number): unknown {
  checkDepth(depth)
  if (typeof value === 'string') return map([value])[0] ?? ''
  if (Array.isArray(value)) return mapItems(value, (item) => mapTexts(item, map, depth + 1))
  if (!isObject(value)) return value
  return mapEntries(value, (name, item) =>
    notText.test(name) && typeof item === 'string' ? item : mapTexts(item, map, depth + 1),
  )
}

function checkDepth(depth: number): void {
  if (depth > deepest) throw new LlmError(502, `an answer deeper than ${deepest} cannot be guarded`)
}

function mapItems(list: readonly unknown[], map: (item: unknown) => unknown): readonly unknown[] {
  let changed: unknown[] | undefined
  for (const [at, item] of list.entries()) {
    const mapped = map(item)
    if (mapped === item) continue
    changed ??= [...list]
    changed[at] = mapped
  }
  return changed ?? list
}

function mapEntries(
  object: JsonObject,
  map: (name: string, value: unknown) => unknown,
): JsonObject {
  let changed: Record<string, unknown> | undefined
  for (const name of Object.keys(object)) {
    const mapped = map(name, object[name])
    if (mapped === object[name]) continue
    changed ??= { ...object }
    changed[name] = mapped
  }
  return changed ?? object
}
