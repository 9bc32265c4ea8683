/** Token counts of responses. */
import { inputWithCache, type Usage } from '../../chat.ts'
import { countAt, kindsOf, usageOf } from '../../common/usage.ts'
import { compact, field, type JsonObject, listAt, objectAt, stringAt } from '../../json/json.ts'

/** The items of a response that are billed as calls of tools. */
export const billedCalls = new Map<string, string>([
  ['web_search_call', 'webSearch'],
  ['file_search_call', 'fileSearch'],
  ['code_interpreter_call', 'codeInterpreter'],
])

/** Counts the calls of tools that a response has; undefined if it has none. */
export function readResponsesCalls(response: unknown): Usage['calls'] {
  let calls: Record<string, number> | undefined
  for (const item of listAt(response, 'output')) {
    const name = billedCalls.get(stringAt(item, 'type') ?? '')
    if (name === undefined) continue
    calls ??= {}
    calls[name] = (calls[name] ?? 0) + 1
  }
  return calls
}

/** Reads the usage of a whole response, or of the one in the last event of a stream. */
export function readUsageOfResponse(response: unknown): Usage | undefined {
  const usage = readResponsesUsage(field(response, 'usage'))
  const [calls, service] = [readResponsesCalls(response), stringAt(response, 'service_tier')]
  return usage && { ...usage, ...(calls && { calls }), ...(service !== undefined && { service }) }
}

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
