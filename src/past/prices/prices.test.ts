import { describe, expect, it } from 'vitest'
import { costOf, type PriceList, usageOf } from './price-list.ts'
import { readPrices } from './read-prices.ts'

function prices(text: string): PriceList {
  const read = readPrices(text, 'prices.yaml')
  if (!read.ok) throw new Error(read.problems.join('\n'))
  return read.value
}

const use = {
  model: 'gpt-4o-mini',
  provider: 'openai',
  input: 1_000_000,
  output: 100_000,
  cacheRead: 0,
  cacheWrite: 0,
}

describe('a price list', () => {
  const list = prices(`
currency: EUR
models:
- { model: gpt-4o-mini, provider: azure.openai, input: 9, output: 9 }
- { model: gpt-4o-mini, input: 0.15, output: 0.6, cacheRead: 0.075 }
- { model: gpt-4o*, input: 2.5, output: 10 }
- { model: text-embedding*, input: 0.02 }
`)

  it('prices a model by the first entry for its name and provider', () => {
    expect(costOf(list, use)).toBeCloseTo(0.15 + 0.06)
    expect(costOf(list, { ...use, provider: 'azure.openai' })).toBeCloseTo(9 + 0.9)
    expect(costOf(list, { ...use, model: 'gpt-4o-2024-08-06' })).toBeCloseTo(2.5 + 1)
  })

  it('prices tokens of a cache on their own, or like other input', () => {
    const cached = { ...use, output: 0, cacheRead: 400_000, cacheWrite: 200_000 }
    expect(costOf(list, cached)).toBeCloseTo(0.4 * 0.15 + 0.4 * 0.075 + 0.2 * 0.15)
  })

  it('has no cost for other models, and for output without a price', () => {
    expect(costOf(list, { ...use, model: 'claude' })).toBeUndefined()
    const embedding = { ...use, model: 'text-embedding-3-small' }
    expect(costOf(list, embedding)).toBeUndefined()
    expect(costOf(list, { ...embedding, output: 0 })).toBeCloseTo(0.02)
  })

  it('prices the tokens that a decision record has', () => {
    const details = {
      'gen_ai.request.model': 'gpt-4o-mini',
      'gen_ai.provider.name': 'openai',
      'gen_ai.usage.input_tokens': 1_000,
      'gen_ai.usage.cache_read.input_tokens': 600,
      'gen_ai.usage.output_tokens': 10,
    }
    const read = usageOf(details)
    expect(read && costOf(list, read)).toBeCloseTo((400 * 0.15 + 600 * 0.075 + 10 * 0.6) / 1e6)
    expect(usageOf({ 'mcp.method': 'tools/call' })).toBeUndefined()
  })

  it.each([
    ['', 'prices.yaml:1: expected one document'],
    ['currency: USD\nmodels: []\n---\ncurrency: USD\n', 'prices.yaml:4: expected one document'],
    ['currency: [', 'prices.yaml:1: not YAML'],
    ['- 1', 'prices.yaml:1: expected an object'],
    ['currency: euro\nmodels: []', 'prices.yaml:1: currency: expected a code of ISO 4217'],
    ['currency: USD', 'prices.yaml:1: models: expected a list'],
    [
      'currency: USD\nmodels:\n- model: a\n  input: -1',
      'prices.yaml:4: models[0].input: expected a number that is not negative',
    ],
    [
      'currency: USD\nmodels:\n- { model: a, input: 1 }\n- model: b\n  inputs: 1',
      'prices.yaml:5: models[1].inputs: unknown field; did you mean input?',
    ],
    ['currency: USD\nmodels:\n- model: ""\n  input: 1', 'prices.yaml:3: models[0].model: expected'],
  ])('names file, line and field of what is wrong in %j', (text, message) => {
    const read = readPrices(text, 'prices.yaml')
    expect(read.ok ? [] : read.problems).toEqual([expect.stringContaining(message)])
  })
})
