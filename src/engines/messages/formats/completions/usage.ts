/** Token counts of responses. */
import { inputWithCache, type Usage } from '../../chat.ts'
import { countAt, kindsOf, usageOf } from '../../common/usage.ts'
import { compact, type JsonObject, objectAt } from '../../json/json.ts'

/** `service` is the service that the response names, outside of the usage. */
export function readCompletionsUsage(usage: unknown, service?: string): Usage | undefined {
  const input = countAt(usage, 'prompt_tokens')
  const total = countAt(usage, 'total_tokens')
  if (input === undefined && total === undefined) return undefined
  const details = objectAt(usage, 'prompt_tokens_details')
  const outputDetails = objectAt(usage, 'completion_tokens_details')
  const reasoning = countAt(outputDetails, 'reasoning_tokens')
  const completion = countAt(usage, 'completion_tokens') ?? Math.max(0, (total ?? 0) - (input ?? 0))
  // Some servers, such as those of xAI, count reasoning beside the completion; only the total tells.
  const isBeside = total === (input ?? 0) + completion + (reasoning ?? 0)
  const counts = {
    input,
    output: isBeside ? completion + (reasoning ?? 0) : completion,
    cacheRead: countAt(details, 'cached_tokens') ?? countAt(usage, 'prompt_cache_hit_tokens'),
    cacheWrite: countAt(details, 'cache_write_tokens'),
    reasoning,
    kinds: kindsOf(details, outputDetails),
    service,
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
