/** Usage in the messages format: input excludes what a cache gave or took. */
import type { Usage } from '../../chat.ts'
import { compact, type JsonObject, numberAt } from '../../json.ts'

export function readMessagesUsage(usage: unknown): Usage | undefined {
  const input = numberAt(usage, 'input_tokens')
  const output = numberAt(usage, 'output_tokens')
  if (input === undefined && output === undefined) return undefined
  const cacheRead = numberAt(usage, 'cache_read_input_tokens')
  const cacheWrite = numberAt(usage, 'cache_creation_input_tokens')
  return {
    input: input ?? 0,
    uncachedInput: input ?? 0,
    output: output ?? 0,
    ...(cacheRead !== undefined && { cacheRead }),
    ...(cacheWrite !== undefined && { cacheWrite }),
  }
}

export function writeMessagesUsage(usage: Usage | undefined): JsonObject {
  return compact({
    input_tokens: usage?.uncachedInput ?? 0,
    cache_creation_input_tokens: usage?.cacheWrite,
    cache_read_input_tokens: usage?.cacheRead,
    output_tokens: usage?.output ?? 0,
  })
}
