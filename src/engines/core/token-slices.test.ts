import { describe, expect, it, vi } from 'vitest'
import { countTextsForModel, tokenSlices } from './token-slices.ts'
import { countTokensForModel } from './tokens.ts'

const prose = "It's 12 o'clock, they said: \"Wait for us\"  and we'll wait; naïve café 中文 text.\n"

describe('counting tokens of long texts', () => {
  it.each(['gpt-4o', 'gpt-4', 'claude-x'])(
    'gives the count of the whole text for %s',
    async (model) => {
      const texts = ['', 'short', prose.repeat(2_000), 'x'.repeat(30_000), '中'.repeat(20_000)]
      const expected = texts.map((text) => countTokensForModel(text, model).tokens)
      expect(await countTextsForModel(texts, model)).toEqual(expected)
    },
  )

  it('works on slices of bounded length if the text can be split', () => {
    const slices = tokenSlices(prose.repeat(2_000))
    expect(slices.join('')).toBe(prose.repeat(2_000))
    expect(Math.max(...slices.map(({ length }) => length))).toBeLessThan(9_000)
    expect(tokenSlices('x'.repeat(100_000))).toHaveLength(1)
  })

  it('yields to the event loop', async () => {
    let turns = 0
    const timer = setInterval(() => turns++, 0)
    await countTextsForModel([prose.repeat(20_000)], 'gpt-4o')
    clearInterval(timer)
    expect(turns).toBeGreaterThan(1)
  })
  it('lets other work run while the vocabulary is loaded, and loads it once', async () => {
    vi.resetModules()
    const { countTokens, loadEncodingInSteps } = await import('./tokens.ts')
    let turns = 0
    const timer = setInterval(() => turns++, 0)
    const first = loadEncodingInSteps('o200k_base')
    await Promise.all([first, loadEncodingInSteps('o200k_base')])
    clearInterval(timer)
    expect(turns).toBeGreaterThan(1)
    expect(countTokens('hello world', 'o200k_base')).toBe(2)
  })

  it('counts a text at once although the vocabulary is being loaded', async () => {
    vi.resetModules()
    const { countTokens, loadEncodingInSteps } = await import('./tokens.ts')
    const loaded = loadEncodingInSteps('o200k_base')
    expect(countTokens('hello world', 'o200k_base')).toBe(2)
    await loaded
    expect(countTokens('hello world', 'o200k_base')).toBe(2)
  })
})
