/** Token counts of responses. */
import { inputWithCache, type Usage } from '../../chat.ts'
import { kindsOf, usageOf } from '../../common/usage.ts'
import { compact, type JsonObject, numberAt, objectAt } from '../../json/json.ts'

export function readResponsesUsage(usage: unknown): Usage | undefined {
  const details = objectAt(usage, 'input_tokens_details')
  const outputDetails = objectAt(usage, 'output_tokens_details')
  const counts = {
    input: numberAt(usage, 'input_tokens'),
    output: numberAt(usage, 'output_tokens'),
    cacheRead: numberAt(details, 'cached_tokens'),
    cacheWrite: numberAt(details, 'cache_write_tokens'),
    reasoning: numberAt(outputDetails, 'reasoning_tokens'),
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
