import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import families from './families.json' with { type: 'json' }
import { catalogOf } from './read-catalog.ts'
import { shippedCatalog } from './shipped.ts'

// Processes take these files as they are, so that they need not check them at every start.
describe('the shipped catalog', () => {
  it('has only valid families and models', () => {
    expect(catalogOf(families).problems).toEqual([])
    const text = readFileSync(new URL('./models.json', import.meta.url), 'utf8')
    const { problems, providers } = catalogOf(JSON.parse(text))
    expect(problems).toEqual([])
    for (const [id, models] of providers) {
      // Readers of the shipped file do not change names to lower case.
      for (const name of models.keys()) expect(name).toBe(name.toLowerCase())
      expect(shippedCatalog.hasProvider(id)).toBe(true)
    }
  })

  it('has prices of current models at every kind of vendor', () => {
    expect(shippedCatalog.pricesOf('gpt-4o', 'openai')).toBeDefined()
    expect(shippedCatalog.pricesOf('claude-opus-4-7', 'anthropic')).toBeDefined()
    expect(shippedCatalog.pricesOf('grok-4.6', 'x_ai')).toBeDefined()
    expect(shippedCatalog.pricesOf('eu.anthropic.claude-opus-4-7', 'aws.bedrock')).toBeDefined()
    expect(shippedCatalog.pricesOf('claude-opus-4-7', 'compatible/anthropic')).toBeDefined()
  })
})
