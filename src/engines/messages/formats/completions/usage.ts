/** Token counts of responses. */
import { inputWithCache, type Usage } from '../../chat.ts'
import { countAt, kindsOf, usageOf } from '../../common/usage.ts'
import { compact, type JsonObject, objectAt } from '../../json/json.ts'

export function readCompletionsUsage(usage: unknown): Usage | undefined {
  const input = countAt(usage, 'prompt_tokens')
  const total = countAt(usage, 'total_tokens')
  if (input === undefined && total === undefined) return undefined
  const details = objectAt(usage, 'prompt_tokens_details')
  const outputDetails = objectAt(usage, 'completion_tokens_details')
  const counts = {
    input,
    output: countAt(usage, 'completion_tokens') ?? Math.max(0, (total ?? 0) - (input ?? 0)),
    cacheRead: countAt(details, 'cached_tokens'),
    cacheWrite: countAt(details, 'cache_write_tokens'),
    reasoning: countAt(outputDetails, 'reasoning_tokens'),
    kinds: kindsOf(details, outputDetails),
  }
  return usageOf(counts, 'included')
}

export function writeCompletionsUsage(usage: Usage): JsonObject {
  const { output, cacheRead, cacheWrite, reasoning } = usage
  const input = inputWithCache(usage)
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
