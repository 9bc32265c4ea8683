/** Token counts of responses. */
import type { Usage } from '../../chat.ts'
import { countAt, usageOf } from '../../common/usage.ts'
import { listAt, stringAt } from '../../json/json.ts'

/** The counts of tokens by what they are made from, which vendor D lists for each side. */
const kinds = [
  ['inputAudioTokens', ['promptTokensDetails', 'toolUsePromptTokensDetails'], 'AUDIO'],
  ['inputImageTokens', ['promptTokensDetails', 'toolUsePromptTokensDetails'], 'IMAGE'],
  ['outputAudioTokens', ['candidatesTokensDetails', 'responseTokensDetails'], 'AUDIO'],
  ['outputImageTokens', ['candidatesTokensDetails', 'responseTokensDetails'], 'IMAGE'],
] as const

function modalityIn(usage: unknown, list: string, modality: string): number {
  return listAt(usage, list).reduce<number>(
    (sum, one) =>
      sum + (stringAt(one, 'modality') === modality ? (countAt(one, 'tokenCount') ?? 0) : 0),
    0,
  )
}

function kindsIn(usage: unknown): Usage['kinds'] {
  const found = kinds.flatMap(([name, lists, modality]) => {
    const count = lists.reduce((sum, list) => sum + modalityIn(usage, list, modality), 0)
    return count === 0 ? [] : [[name, count] as const]
  })
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

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
  const cacheReadAudio = modalityIn(usage, 'cacheTokensDetails', 'AUDIO')
  const counts = {
    input,
    output,
    cacheRead,
    cacheReadAudio,
    reasoning,
    kinds: kindsIn(usage),
    service: stringAt(usage, 'serviceTier') ?? stringAt(usage, 'trafficType'),
  }
  return usageOf(counts, 'included')
}
