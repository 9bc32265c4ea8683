/** The moderation guard: the endpoint of vendorA says whether a text is flagged. */
import { booleanAt, field, type JsonObject, parseJson } from '../json.ts'
import type { RoleText } from './slots.ts'

export const moderationHost = 'api.openai.com'
export const moderationPath = '/v1/moderations'
const defaultModel = 'omni-moderation-latest'

export function moderationBody(texts: readonly RoleText[], model: string | undefined): JsonObject {
  return { input: texts.map(({ content }) => content), model: model ?? defaultModel }
}

/** Undefined where the answer cannot be read, which counts as a failure. */
export function isFlagged(text: string): boolean | undefined {
  const results = field(parseJson(text), 'results')
  if (!Array.isArray(results) || results.length === 0) return undefined
  const flags = results.map((result) => booleanAt(result, 'flagged'))
  return flags.includes(undefined) ? undefined : flags.includes(true)
}
