import { describe, expect, it } from 'vitest'
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
})
