import { describe, expect, it } from 'vitest'
import { readCompletionsUsage } from '../formats/completions/usage.ts'
import { readConverseUsage } from '../formats/converse/usage.ts'
import { readGenerateContentUsage } from '../formats/generate-content/usage.ts'
import { readMessagesUsage } from '../formats/messages/usage.ts'
import { readResponsesUsage } from '../formats/responses/usage.ts'
import { readRealtimeUsage } from './usage.ts'

describe('counts that no message can have', () => {
  it.each([-5, 1.5, 2 ** 53, 1e300, '7', null, true])('are unknown: %s', (count) => {
    const known = { input: 600, uncachedInput: 600, output: 0 }
    expect(readCompletionsUsage({ prompt_tokens: count })).toBe(undefined)
    expect(readCompletionsUsage({ prompt_tokens: 600, completion_tokens: count })).toEqual(known)
    expect(readResponsesUsage({ input_tokens: 600, output_tokens: count })).toEqual(known)
    expect(readMessagesUsage({ input_tokens: 600, output_tokens: count })).toEqual(known)
    expect(readMessagesUsage({ input_tokens: 600, cache_read_input_tokens: count })).toEqual(known)
    expect(readConverseUsage({ inputTokens: 600, cacheReadInputTokens: count })).toEqual(known)
    expect(readRealtimeUsage({ input_tokens: 600, output_tokens: count })).toEqual(known)
    const generated = {
      promptTokenCount: 600,
      cachedContentTokenCount: count,
      thoughtsTokenCount: count,
    }
    expect(readGenerateContentUsage(generated)).toEqual(known)
  })

  it('are unknown if a detail is more than its whole', () => {
    const details = {
      cached_tokens: 1e9,
      cache_write_tokens: 7,
      audio_tokens: 601,
      text_tokens: 600,
    }
    const usage = {
      prompt_tokens: 600,
      completion_tokens: 5,
      prompt_tokens_details: details,
      completion_tokens_details: { reasoning_tokens: 6, audio_tokens: 5 },
    }
    const kinds = { inputTextTokens: 600, outputAudioTokens: 5 }
    const expected = { input: 600, uncachedInput: 593, output: 5, cacheWrite: 7, kinds }
    expect(readCompletionsUsage(usage)).toEqual(expected)
    const both = { cached_tokens: 400, cache_write_tokens: 400 }
    expect(readResponsesUsage({ input_tokens: 600, input_tokens_details: both })).toEqual({
      input: 600,
      uncachedInput: 200,
      output: 0,
      cacheRead: 400,
    })
    const generated = { promptTokenCount: 6, cachedContentTokenCount: 7, thoughtsTokenCount: 2 }
    expect(readGenerateContentUsage(generated)).toEqual({
      input: 6,
      uncachedInput: 6,
      output: 2,
      reasoning: 2,
    })
  })
})
