/** Usage in chat completions: cached tokens are part of `prompt_tokens`. */
import type { Usage } from '../../chat.ts'
import { compact, type JsonObject, numberAt, objectAt } from '../../json.ts'

const kindNames = ['text', 'audio', 'image'] as const

/** Tokens by kind, from the details of input and of output; undefined where there are none. */
export function kindsOf(
  input: JsonObject | undefined,
  output: JsonObject | undefined,
): Pick<Usage, 'kinds'> {
  const found: Record<string, number> = {}
  for (const kind of kindNames) {
    const name = `${kind[0]?.toUpperCase()}${kind.slice(1)}Tokens`
    const ofInput = numberAt(input, `${kind}_tokens`)
    const ofOutput = numberAt(output, `${kind}_tokens`)
    if (ofInput !== undefined) found[`input${name}`] = ofInput
    if (ofOutput !== undefined) found[`output${name}`] = ofOutput
  }
  return Object.keys(found).length === 0 ? {} : { kinds: found }
}

export function readCompletionsUsage(usage: unknown): Usage | undefined {
  const input = numberAt(usage, 'prompt_tokens')
  const total = numberAt(usage, 'total_tokens')
  if (input === undefined && total === undefined) return undefined
  const prompt = input ?? 0
  const details = objectAt(usage, 'prompt_tokens_details')
  const cacheRead = numberAt(details, 'cached_tokens')
  const cacheWrite = numberAt(details, 'cache_write_tokens')
  const outputDetails = objectAt(usage, 'completion_tokens_details')
  const reasoning = numberAt(outputDetails, 'reasoning_tokens')
  const output = numberAt(usage, 'completion_tokens') ?? Math.max(0, (total ?? prompt) - prompt)
  return {
    input: prompt,
    uncachedInput: Math.max(0, prompt - (cacheRead ?? 0) - (cacheWrite ?? 0)),
    output,
    ...(cacheRead !== undefined && { cacheRead }),
    ...(cacheWrite !== undefined && { cacheWrite }),
    ...(reasoning !== undefined && { reasoning }),
    ...kindsOf(details, outputDetails),
  }
}

export function writeCompletionsUsage({
  input,
  output,
  cacheRead,
  cacheWrite,
  reasoning,
}: Usage): JsonObject {
  const hasCache = cacheRead !== undefined || cacheWrite !== undefined
  return compact({
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: hasCache
      ? compact({ cached_tokens: cacheRead, cache_write_tokens: cacheWrite })
      : undefined,
    completion_tokens_details:
      reasoning === undefined ? undefined : { reasoning_tokens: reasoning },
    cache_read_input_tokens: cacheRead,
    cache_creation_input_tokens: cacheWrite,
  })
}
