/** Token counts of responses. */
import type { Usage } from '../../chat.ts'
import { callsOf, countAt, sumOfUsage, usageOf } from '../../common/usage.ts'
import { compact, type JsonObject, listAt, objectAt, stringAt } from '../../json/json.ts'

/** Reads the usage of vendor C. The compactions of a request are billed in addition to its own counts. */
export function readMessagesUsage(usage: unknown): Usage | undefined {
  const own = messagesUsage(usage)
  const compactions = listAt(usage, 'iterations').filter(isCompaction)
  return own && compactions.reduce<Usage>((sum, one) => sumOfUsage(sum, messagesUsage(one)), own)
}

const isCompaction = (iteration: unknown): boolean => stringAt(iteration, 'type') === 'compaction'

function messagesUsage(usage: unknown): Usage | undefined {
  const counts = {
    input: countAt(usage, 'input_tokens'),
    output: countAt(usage, 'output_tokens'),
    cacheRead: countAt(usage, 'cache_read_input_tokens'),
    cacheWrite: countAt(usage, 'cache_creation_input_tokens'),
    cacheWrite1h: countAt(objectAt(usage, 'cache_creation'), 'ephemeral_1h_input_tokens'),
    reasoning: countAt(objectAt(usage, 'output_tokens_details'), 'thinking_tokens'),
    calls: callsOf('webSearch', countAt(objectAt(usage, 'server_tool_use'), 'web_search_requests')),
    service: stringAt(usage, 'service_tier'),
    geography: stringAt(usage, 'inference_geo'),
    speed: stringAt(usage, 'speed'),
  }
  return usageOf(counts, 'separate')
}

export function writeMessagesUsage(usage: Usage | undefined): JsonObject {
  return compact({
    input_tokens: usage?.uncachedInput ?? 0,
    cache_creation_input_tokens: usage?.cacheWrite,
    cache_read_input_tokens: usage?.cacheRead,
    output_tokens: usage?.output ?? 0,
  })
}
