/** Token counts of responses. */
import type { Usage } from '../../chat.ts'
import { countAt, usageOf } from '../../common/usage.ts'

/**
 * Reads the usage of vendor D, which counts thoughts, and what its own tools add to the prompt, separately.
 * `output` and `input` include them.
 */
export function readGenerateContentUsage(usage: unknown): Usage | undefined {
  const prompt = countAt(usage, 'promptTokenCount')
  const added = countAt(usage, 'toolUsePromptTokenCount')
  if (prompt === undefined && added === undefined) return undefined
  const input = (prompt ?? 0) + (added ?? 0)
  const reasoning = countAt(usage, 'thoughtsTokenCount')
  const output = (countAt(usage, 'candidatesTokenCount') ?? 0) + (reasoning ?? 0)
  const cacheRead = countAt(usage, 'cachedContentTokenCount')
  return usageOf({ input, output, cacheRead, reasoning }, 'included')
}
