/** Token counts of responses. */
import type { Usage } from '../../chat.ts'
import { usageOf } from '../../common/usage.ts'
import { numberAt } from '../../json/json.ts'

/**
 * Reads the usage of vendor D, which counts thoughts, and what its own tools add to the prompt, separately.
 * `output` and `input` include them.
 */
export function readGenerateContentUsage(usage: unknown): Usage | undefined {
  const prompt = numberAt(usage, 'promptTokenCount')
  const added = numberAt(usage, 'toolUsePromptTokenCount')
  if (prompt === undefined && added === undefined) return undefined
  const input = (prompt ?? 0) + (added ?? 0)
  const reasoning = numberAt(usage, 'thoughtsTokenCount')
  const output = (numberAt(usage, 'candidatesTokenCount') ?? 0) + (reasoning ?? 0)
  const cacheRead = numberAt(usage, 'cachedContentTokenCount')
  return usageOf({ input, output, cacheRead, reasoning }, 'included')
}
