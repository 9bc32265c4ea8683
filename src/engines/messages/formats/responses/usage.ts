/** Token counts of responses. */
import { inputWithCache, type Usage } from '../../chat.ts'
import { countAt, kindsOf, usageOf } from '../../common/usage.ts'
import { compact, type JsonObject, objectAt } from '../../json/json.ts'

export function readResponsesUsage(usage: unknown): Usage | undefined {
  const details = objectAt(usage, 'input_tokens_details')
  const outputDetails = objectAt(usage, 'output_tokens_details')
  const counts = {
    input: countAt(usage, 'input_tokens'),
    output: countAt(usage, 'output_tokens'),
    cacheRead: countAt(details, 'cached_tokens'),
    cacheWrite: countAt(details, 'cache_write_tokens'),
    reasoning: countAt(outputDetails, 'reasoning_tokens'),
    kinds: kindsOf(details, outputDetails),
  }
  return usageOf(counts, 'included')
}

export function writeResponsesUsage(usage: Usage | undefined): JsonObject | null {
  if (usage === undefined) return null
  const { output, cacheRead = 0, cacheWrite, reasoning = 0 } = usage
  const input = inputWithCache(usage)
  return {
    input_tokens: input,
    input_tokens_details: compact({ cached_tokens: cacheRead, cache_write_tokens: cacheWrite }),
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}
