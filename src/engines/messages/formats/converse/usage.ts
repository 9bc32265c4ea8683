/** Token counts of responses. */
import type { Usage } from '../../chat.ts'
import { countAt, usageOf } from '../../common/usage.ts'

export function readConverseUsage(usage: unknown): Usage | undefined {
  const counts = {
    input: countAt(usage, 'inputTokens'),
    output: countAt(usage, 'outputTokens'),
    cacheRead: countAt(usage, 'cacheReadInputTokens'),
    cacheWrite: countAt(usage, 'cacheWriteInputTokens'),
  }
  return usageOf(counts, 'separate')
}
