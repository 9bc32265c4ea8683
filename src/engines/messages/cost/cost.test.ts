import { describe, expect, it } from 'vitest'
import { ModelCatalog } from '../catalog/catalog.ts'
import type { ModelEntry } from '../catalog/facts.ts'
import { catalogOf } from '../catalog/read-catalog.ts'
import type { Usage } from '../chat.ts'
import { readCompletionsUsage } from '../formats/completions/usage.ts'
import { readConverseUsage } from '../formats/converse/usage.ts'
import { readGenerateContentUsage } from '../formats/generate-content/usage.ts'
import { readMessagesUsage } from '../formats/messages/usage.ts'
import { costOf, partsOf } from './cost.ts'
import { counterNames, countersOf } from './counters.ts'
import { readUsd, usdText } from './money.ts'
import type { CostTerms } from './prices.ts'

function catalogWith(model: string, entry: ModelEntry, provider = 'anthropic'): ModelCatalog {
  const { problems, ...content } = catalogOf({
    providers: { [provider]: { models: { [model]: entry } } },
  })
  expect(problems).toEqual([])
  return new ModelCatalog([{ ...content, digest: '' }])
}

function priced(usage: Usage | undefined, entry: ModelEntry, terms: Partial<CostTerms> = {}) {
  if (usage === undefined) throw new Error('no usage')
  const prices = catalogWith('m', entry).pricesOf('m', 'anthropic')
  const cost = costOf(usage, prices, { at: 0, ...terms })
  const sum = Object.values(partsOf(cost)).reduce((all, part) => all + part, 0n)
  expect(sum).toBe(cost.total)
  return `${usdText(cost.total)} ${cost.status}`
}

const counted = (usage: Usage | undefined) => {
  const counters = usage === undefined ? [] : countersOf(usage)
  const entries = counterNames.map((name, index) => [name, counters[index] ?? 0] as const)
  return Object.fromEntries(entries.filter(([, count]) => count > 0))
}

const plain = (input: number, output = 0): Usage => ({ input, uncachedInput: input, output })

describe('the cost of a request', () => {
  it('counts tokens that are written to a cache once', () => {
    const first = readMessagesUsage({
      input_tokens: 3,
      cache_creation_input_tokens: 12_304,
      output_tokens: 550,
    })
    const rates = { input: '3', cacheWrite: '3.75', output: '15' }
    expect(priced(first, { rates })).toBe('0.054399 exact')
    const second = readMessagesUsage({
      input_tokens: 6,
      cache_creation_input_tokens: 159_217,
      output_tokens: 2_745,
    })
    const opus = { input: '5', cacheWrite: '6.25', output: '25' }
    expect(priced(second, { rates: opus })).toBe('1.06376125 exact')
  })

  it('prices tokens that are cached for an hour and for five minutes apart', () => {
    const usage = readMessagesUsage({
      input_tokens: 0,
      output_tokens: 0,
      cache_creation_input_tokens: 1_000,
      cache_creation: { ephemeral_5m_input_tokens: 400, ephemeral_1h_input_tokens: 600 },
    })
    const rates = { input: '5', cacheWrite: '6.25', cacheWrite1h: '10' }
    expect(priced(usage, { rates })).toBe('0.0085 exact')
    expect(priced(usage, { rates: { input: '5', cacheWrite: '6.25' } })).toBe('0.00625 partial')
  })

  it('knows no service, place or speed by a name that every object has', () => {
    const rates = { input: '3', output: '15' }
    const multipliers = { geography: { us: '1.1' }, speed: { fast: '2' } }
    for (const name of ['constructor', 'toString', '__proto__']) {
      const usage = { ...plain(1_000), service: name, geography: name, speed: name }
      expect(priced(usage, { rates, multipliers })).toBe('0.003 partial')
    }
  })

  it('counts each token in one counter', () => {
    const chat = readCompletionsUsage({
      prompt_tokens: 1_000,
      completion_tokens: 800,
      prompt_tokens_details: { cached_tokens: 200, audio_tokens: 100 },
      completion_tokens_details: { reasoning_tokens: 500, audio_tokens: 100 },
    })
    expect(counted(chat)).toEqual({
      input: 700,
      cacheRead: 200,
      inputAudio: 100,
      output: 200,
      reasoning: 500,
      outputAudio: 100,
    })
    const thoughts = readGenerateContentUsage({
      promptTokenCount: 100,
      cachedContentTokenCount: 40,
      candidatesTokenCount: 293,
      thoughtsTokenCount: 203,
      toolUsePromptTokenCount: 50,
    })
    expect(counted(thoughts)).toEqual({ input: 110, cacheRead: 40, output: 293, reasoning: 203 })
    const absurd = {
      ...plain(10, 5),
      kinds: { inputAudioTokens: 8, inputImageTokens: 8, outputImageTokens: 99 },
    }
    expect(counted(absurd)).toEqual({ inputAudio: 8, inputImage: 2, outputImage: 5 })
  })

  it('takes the price of a long context for all tokens, if the input exceeds the threshold', () => {
    const entry: ModelEntry = {
      rates: { input: '1', output: '2' },
      tiers: [
        { contextOver: 272_000, input: '3' },
        { contextOver: 500_000, input: '5', output: '7' },
      ],
    }
    expect(priced(plain(272_000, 1_000_000), entry)).toBe('2.272 exact')
    expect(priced(plain(272_001, 1_000_000), entry)).toBe('2.816003 exact')
    const cached = { ...plain(1, 0), cacheRead: 272_000 }
    expect(priced(cached, entry)).toBe('0.816003 exact')
    expect(priced(plain(600_000, 1_000_000), entry)).toBe('10 exact')
  })

  it('takes the prices of the service that the response names', () => {
    const entry: ModelEntry = {
      rates: { input: '2', output: '8', cacheRead: '0.5' },
      tiers: [
        { contextOver: 200_000, input: '4' },
        { service: 'priority', input: '4', output: '16' },
        { service: 'flex', contextOver: 200_000, input: '3' },
      ],
    }
    const usage = plain(1_000, 1_000)
    expect(priced(usage, entry, { service: 'default' })).toBe('0.01 exact')
    expect(priced(usage, entry, { service: 'priority' })).toBe('0.02 exact')
    expect(priced({ ...usage, service: 'fast' }, entry)).toBe('0.02 exact')
    expect(priced({ ...usage, service: 'ON_DEMAND_PRIORITY' }, entry)).toBe('0.02 exact')
    expect(priced(usage, entry, { service: 'flex' })).toBe('0.01 exact')
    expect(priced(plain(200_001), entry, { service: 'flex' })).toBe('0.600003 exact')
    // Batches cost half of everything that has no price of its own.
    expect(priced(usage, entry, { service: 'batch' })).toBe('0.005 exact')
    expect(priced(plain(200_001), entry, { service: 'batch' })).toBe('0.400002 exact')
    expect(priced(usage, entry, { service: 'new-service' })).toBe('0.01 partial')
    // Capacity that is paid in advance has no price per token, unless the user says one.
    expect(priced(usage, entry, { service: 'scale' })).toBe('0 unknown')
    const free: ModelEntry = {
      ...entry,
      tiers: [{ service: 'provisioned', input: '0', output: '0' }],
    }
    expect(priced(usage, free, { service: 'PROVISIONED_THROUGHPUT' })).toBe('0 exact')
  })

  it('multiplies by the place and the speed that the response names', () => {
    const entry: ModelEntry = {
      rates: { input: '5', output: '25' },
      multipliers: { geography: { us: '1.1' }, speed: { fast: '6' } },
    }
    const usage = plain(1_000, 1_000)
    expect(priced({ ...usage, geography: 'global', speed: 'standard' }, entry)).toBe('0.03 exact')
    expect(priced({ ...usage, geography: 'us' }, entry)).toBe('0.033 exact')
    expect(priced({ ...usage, geography: 'us', speed: 'fast' }, entry)).toBe('0.198 exact')
    expect(priced({ ...usage, speed: 'warp' }, entry)).toBe('0.03 partial')
  })

  it('takes other prices in the hours of the list', () => {
    const entry: ModelEntry = {
      rates: { input: '2' },
      tiers: [{ utc: { hours: '16:30-00:30', days: [5] }, input: '1' }],
    }
    const atTime = (time: string) =>
      priced(plain(1_000_000), entry, { at: Date.parse(`2026-11-${time}Z`) })
    // 27 November 2026 is a Friday.
    expect(atTime('27T16:29:59')).toBe('2 exact')
    expect(atTime('27T16:30:00')).toBe('1 exact')
    expect(atTime('28T00:29:59')).toBe('1 exact')
    expect(atTime('28T00:30:00')).toBe('2 exact')
    expect(atTime('28T20:00:00')).toBe('2 exact')
    expect(atTime('27T00:10:00')).toBe('2 exact')
  })

  it('adds calls of tools', () => {
    const usage = { ...plain(1_000), calls: { webSearch: 3 } }
    const entry: ModelEntry = { rates: { input: '2' }, calls: { webSearch: '0.01' } }
    expect(priced(usage, entry)).toBe('0.032 exact')
    expect(priced({ ...usage, calls: { fileSearch: 1 } }, entry)).toBe('0.002 partial')
    const rerank = { ...plain(0), calls: { searchUnit: 2 } }
    expect(priced(rerank, { calls: { searchUnit: '0.0025' } })).toBe('0.005 exact')
  })

  it('is unknown without a price, and 0 if the model is free', () => {
    const usage = plain(1_000, 10)
    expect(priced(usage, { rates: { input: '0', output: '0' } })).toBe('0 exact')
    expect(priced(usage, { rates: { input: '2' } })).toBe('0.002 partial')
    expect(priced(plain(0, 10), { rates: { input: '2' } })).toBe('0 unknown')
    expect(priced(usage, { limits: { context: 1 } })).toBe('0 unknown')
    expect(costOf(usage, undefined, { at: 0 }).status).toBe('unknown')
    // A model without output, such as one for embeddings, needs no price of it.
    expect(priced(plain(1_000), { rates: { input: '0.02' } })).toBe('0.00002 exact')
  })

  it('is exact for one cached token of a small model, and for more than 9,007 USD', () => {
    const small = { ...plain(0), cacheRead: 1 }
    expect(priced(small, { rates: { input: '0.075', cacheRead: '0.003' } })).toBe(
      '0.000000003 exact',
    )
    const large = plain(Number.MAX_SAFE_INTEGER, 1)
    expect(priced(large, { rates: { input: '999999999.999999', output: '1' } })).toBe(
      '9007199254740981992.800746259009 exact',
    )
  })
})

describe('requests of public reports, which other programs priced wrong', () => {
  const usageA = (input: number, cached: number, output: number, reasoning = 0) =>
    readCompletionsUsage({
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: reasoning },
    })
  it.each([
    [
      'LiteLLM 11789',
      readMessagesUsage({ input_tokens: 4, cache_read_input_tokens: 2_455, output_tokens: 23 }),
      { input: '0.8', cacheRead: '0.08', output: '4' },
      '0.0002916',
    ],
    [
      'LiteLLM 14849',
      readGenerateContentUsage({
        promptTokenCount: 262_960,
        cachedContentTokenCount: 257_955,
        candidatesTokenCount: 1_744,
      }),
      { input: '1.25', cacheRead: '0.625', output: '10' },
      '0.184918125',
    ],
    [
      'LiteLLM 36168',
      usageA(16_111, 15_872, 2),
      { input: '1', cacheRead: '0.1', output: '2' },
      '0.0018302',
    ],
    [
      'LiteLLM 6215',
      usageA(2_006, 1_920, 300),
      { input: '2.5', cacheRead: '1.25', output: '10' },
      '0.005615',
    ],
    [
      'Logfire 1316',
      usageA(2_746, 2_208, 197, 64),
      { input: '0.25', cacheRead: '0.025', output: '2' },
      '0.0005837',
    ],
    [
      'pi 2148',
      usageA(20_212, 16_298, 931),
      { input: '0.5', cacheRead: '0.05', output: '3' },
      '0.0055649',
    ],
    [
      '9router 2762',
      usageA(1_000, 0, 1_000, 700),
      { input: '3', output: '15', reasoning: '15' },
      '0.018',
    ],
    [
      'agentgateway 3228',
      readGenerateContentUsage({
        promptTokenCount: 100,
        candidatesTokenCount: 1_000,
        thoughtsTokenCount: 50,
      }),
      { input: '0.075', output: '0.3' },
      '0.0003225',
    ],
    [
      'LangSmith 1858',
      readConverseUsage({
        inputTokens: 10,
        cacheReadInputTokens: 9_000,
        cacheWriteInputTokens: 50,
        outputTokens: 1,
      }),
      { input: '3', cacheRead: '0.3', cacheWrite: '3.75', output: '15' },
      '0.0029325',
    ],
    [
      'xAI, whose completions exclude reasoning',
      readCompletionsUsage({
        prompt_tokens: 32,
        completion_tokens: 9,
        total_tokens: 135,
        completion_tokens_details: { reasoning_tokens: 94 },
      }),
      { input: '2', output: '10' },
      '0.001094',
    ],
  ] as const)('%s', (_, usage, rates, cost) => {
    expect(priced(usage, { rates })).toBe(`${cost} exact`)
  })

  it('langfuse 13325: an application inference profile has the price of its own entry', () => {
    const arn = 'arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123'
    const rates = { input: '1' }
    const catalog = catalogWith(arn, { rates }, 'aws.bedrock')
    expect(catalog.pricesOf(arn, 'aws.bedrock')).toBeDefined()
    expect(catalog.pricesOf(arn.replace('abc123', 'other'), 'aws.bedrock')).toBeUndefined()
  })
})

describe('the prices of a model', () => {
  const rates = { input: '1' }
  const has = (listed: string, asked: string, provider = 'aws.bedrock') =>
    catalogWith(listed, { rates }, provider).pricesOf(asked, provider) !== undefined

  it('are found by ids of inference profiles, and by names without date', () => {
    const arn = 'arn:aws:bedrock:us-east-1:123456789012:inference-profile'
    expect(has('us.anthropic.claude-9-v1:0', `${arn}/us.anthropic.claude-9-v1:0`)).toBe(true)
    expect(has('us.anthropic.claude-9', 'us.anthropic.claude-9-v1:0')).toBe(true)
    expect(has('gpt-9', 'gpt-9-2026-11-28', 'openai')).toBe(true)
    expect(has('claude-9', 'claude-9@20261128', 'gcp.vertex_ai')).toBe(true)
  })

  it('are not those of another place, variant, or provider', () => {
    expect(has('global.anthropic.claude-9-v1:0', 'us.anthropic.claude-9-v1:0')).toBe(false)
    expect(has('anthropic.claude-9-v1:0', 'us.anthropic.claude-9-v1:0')).toBe(false)
    expect(has('gpt-9', 'ft:gpt-9-2026-11-28:acme::b1', 'openai')).toBe(false)
    expect(has('ft:gpt-9-2026-11-28', 'ft:gpt-9-2026-11-28:acme::b1', 'openai')).toBe(true)
    expect(has('gpt-oss', 'gpt-oss:120b', 'openai')).toBe(false)
    const catalog = catalogWith('gemini-9', { rates }, 'gcp.gemini')
    expect(catalog.pricesOf('gemini-9', 'gcp.vertex_ai')).toBe(undefined)
  })
})

describe('amounts', () => {
  it('are written exactly, and read again', () => {
    for (const text of ['0', '0.000000000001', '12.5', '9007199254740993.1']) {
      const amount = readUsd(text)
      expect(amount === undefined ? undefined : usdText(amount)).toBe(text)
    }
    expect(usdText(-1n)).toBe('-0.000000000001')
    for (const text of ['', '-1', '1e3', '1.', '.5', '0.0000000000001', 'NaN']) {
      expect(readUsd(text), text).toBe(undefined)
    }
  })
})
