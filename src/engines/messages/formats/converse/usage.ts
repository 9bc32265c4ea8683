/** Token counts of responses. */
import type { Usage } from '../../chat.ts'
import { usageOf } from '../../common/usage.ts'
import { numberAt } from '../../json/json.ts'

export function readConverseUsage(usage: unknown): Usage | undefined {
  const counts = {
    input: numberAt(usage, 'inputTokens'),
    output: numberAt(usage, 'outputTokens'),
    cacheRead: numberAt(usage, 'cacheReadInputTokens'),
    cacheWrite: numberAt(usage, 'cacheWriteInputTokens'),
  }
  return usageOf(counts, 'separate')
}
