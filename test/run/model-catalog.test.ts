/** Catalogs of models: of the user beside the one that ships, in a gateway and on the command line. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { useFixture } from '../support/fixture.ts'
import { freePort, sluice, startGateway } from '../support/gateway.ts'
import { aiBackend, gateway, manifest, routeByPath } from '../support/manifests.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-catalog-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function file(name: string, content: object | string): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const models = (all: object, provider = 'openai') => ({
  providers: { [provider]: { models: all } },
})
const own = file(
  'own.json',
  models({ 'my-model': { refuses: ['temperature'], limitField: 'max_tokens' } }),
)

const port = await freePort()
const a = useFixture(startVendorA)
const running = useFixture(async () => {
  const provider = { vendorA: {}, host: '127.0.0.1', port: a.port }
  const routes = { '/v1/messages': 'Messages' }
  const objects = [
    gateway(port),
    aiBackend('a', { provider }, { ai: { routes }, auth: { key: 'k' } }),
    routeByPath('a'),
  ]
  const missing = join(folder, 'missing.json')
  return startGateway({
    manifests: { 'all.yaml': manifest(...objects) },
    args: ['--model-catalog', `${own},${missing}`],
  })
})

async function sent(model: string): Promise<Record<string, unknown>> {
  const message = { role: 'user', content: 'Hello' }
  const response = await fetch(`http://127.0.0.1:${port}/a/v1/messages`, {
    method: 'POST',
    body: JSON.stringify({
      model,
      max_tokens: 9,
      temperature: 0.5,
      top_p: 0.5,
      messages: [message],
    }),
  })
  expect(response.status, await response.text()).toBe(200)
  return a.calls.at(-1)?.body ?? {}
}

describe('a catalog of the user', () => {
  it('adds rules, is read again when it changes, and is named in the access log', async () => {
    expect(await sent('my-model')).toMatchObject({ max_tokens: 9, top_p: 0.5 })
    expect(await sent('my-model')).not.toHaveProperty('temperature')
    const digest = () =>
      /model\.catalog=(\w{12})/.exec(running.stdout.split('\n').at(-2) ?? '')?.[1]
    const before = await waitFor('the digest', digest)
    file(
      'own.json',
      models({ 'my-model': { refuses: ['top_p'] }, broken: { refuses: ['nothing'] } }),
    )
    await waitFor('the changed catalog', async () => !('top_p' in (await sent('my-model'))))
    expect(await sent('my-model')).toMatchObject({ temperature: 0.5 })
    await waitFor('another digest', () => digest() !== before)
    expect(running.stderr).toContain(
      `${own}: providers.openai.models["broken"].refuses[0]: expected one of temperature, top_p`,
    )
    expect(running.stderr).toContain('missing.json')
    file('own.json', '{ "half')
    await waitFor('the report', () =>
      running.stderr.includes('the last valid catalog stays in force'),
    )
    expect(await sent('my-model')).not.toHaveProperty('top_p')
  })

  it('is not needed for a model whose family is known, and the log says which rules applied', async () => {
    expect(await sent('gpt-99-sol')).toMatchObject({ max_completion_tokens: 9 })
    await waitFor('the log', () => running.stdout.includes('model.assumed=gpt-6.1-sol'))
    await sent('gpt-5.1')
    await waitFor('the log', () => running.stdout.includes('gen_ai.request.model=gpt-5.1'))
    const line = running.stdout
      .split('\n')
      .find((one) => one.includes('gen_ai.request.model=gpt-5.1'))
    expect(line).not.toContain('model.assumed')
  })
})

describe('sluice catalog import', () => {
  it('makes exact decimals of the prices of LiteLLM', async () => {
    const list = file('litellm.json', {
      sample_spec: { litellm_provider: 'one of', input_cost_per_token: 0 },
      'gpt-x': {
        litellm_provider: 'openai',
        mode: 'chat',
        input_cost_per_token: 1.5e-7,
        output_cost_per_token: 6e-7,
        input_cost_per_token_above_200k_tokens: 3e-7,
        output_cost_per_token_batches: 3e-7,
        cache_creation_input_token_cost_above_1hr: 2e-6,
        max_input_tokens: 1000,
        max_output_tokens: 100,
        supported_modalities: ['text', 'image', 'smell'],
        a_new_field: 7,
      },
      'vertex_ai/m': {
        litellm_provider: 'vertex_ai-language-models',
        mode: 'chat',
        input_cost_per_token: 0,
      },
      alias: { alias_of: 'gpt-x', litellm_provider: 'openai' },
      picture: { litellm_provider: 'openai', mode: 'image_generation', input_cost_per_token: 1e-6 },
      film: { litellm_provider: 'openai', mode: 'video_generation', input_cost_per_token: 1e-6 },
    })
    const { stdout, code } = await sluice('catalog', 'import', '--from', 'litellm', list)
    expect(code).toBe(0)
    const { providers } = JSON.parse(stdout)
    const entry = {
      rates: { input: '0.15', output: '0.6', cacheWrite1h: '2' },
      tiers: [
        { contextOver: 200_000, input: '0.3' },
        { service: 'batch', output: '0.3' },
      ],
      limits: { context: 1000, output: 100 },
      modalities: { input: ['text', 'image'], output: [] },
    }
    const picture = { rates: { input: '1' }, modalities: { input: ['text'], output: ['image'] } }
    expect(providers.openai.models).toEqual({ alias: entry, 'gpt-x': entry, picture })
    expect(providers['gcp.vertex_ai'].models).toEqual({ m: { rates: { input: '0' } } })
  })

  it('says what it leaves out and rounds, and keeps the rest', async () => {
    const of = (fields: object) => ({ litellm_provider: 'openai', mode: 'chat', ...fields })
    const list = file('losses.json', {
      large: of({ input_cost_per_token: 1e-6, input_cost_per_token_above_1m_tokens: 2e-6 }),
      precise: of({ input_cost_per_token: 1.23456789e-6, output_cost_per_token: 1e-20 }),
      broken: of({ input_cost_per_token: 1e300 }),
      negative: of({ input_cost_per_token: -1, output_cost_per_token: 1e-6 }),
      foreign: { litellm_provider: 'elsewhere', input_cost_per_token: 1e-6 },
      spoken: of({ mode: 'audio_speech', input_cost_per_character: 1e-6 }),
      filmed: of({ mode: 'video_generation', input_cost_per_token: 1e-6 }),
      drawn: of({ output_cost_per_image: 0.04, input_cost_per_token: 1e-6 }),
    })
    const { stdout, stderr, code } = await sluice('catalog', 'import', '--from', 'litellm', list)
    expect(code).toBe(0)
    expect(JSON.parse(stdout).providers.openai.models).toEqual({
      large: { rates: { input: '1' }, tiers: [{ contextOver: 1_000_000, input: '2' }] },
      precise: { rates: { input: '1.234568' } },
      negative: { rates: { output: '1' } },
      spoken: { modalities: { input: ['text'], output: ['audio'] } },
      drawn: { rates: { input: '1' } },
    })
    expect(stderr.split('\n')).toEqual(
      expect.arrayContaining([
        'left out models of provider elsewhere: foreign',
        'left out models of mode video_generation: filmed',
        'left out input_cost_per_character, which catalogs do not have: spoken',
        'left out output_cost_per_image, which catalogs do not have: drawn',
        expect.stringMatching(/^left out models that are not valid .*"broken".*: broken$/),
        'precise: input_cost_per_token 0.00000123456789 becomes 1.234568',
        'precise: output_cost_per_token 1e-20 is left out: no price of a catalog',
        'negative: input_cost_per_token -1 is left out: no price of a catalog',
      ]),
    )
  })

  it('reads calls, places, speeds, ranges and hours of the list of LiteLLM', async () => {
    const list = file('terms.json', {
      'xai/grok-x': {
        litellm_provider: 'xai',
        input_cost_per_token: 2e-6,
        input_cost_per_token_above_200k_tokens: 4e-6,
      },
      'claude-x': {
        litellm_provider: 'anthropic',
        input_cost_per_token: 5e-6,
        search_context_cost_per_query: { search_context_size_medium: 0.01 },
        provider_specific_entry: { us: 1.1, fast: 2.0, other: 'text' },
      },
      'vertex_ai/gemini-x': {
        litellm_provider: 'vertex_ai-language-models',
        input_cost_per_token: 1e-6,
        regional_endpoint_uplift_multiplier: 1.1,
        google_maps_grounding_cost_per_query: 0.025,
      },
      'deepseek/deepseek-x': {
        litellm_provider: 'deepseek',
        input_cost_per_token: 2e-6,
        off_peak_pricing: {
          windows: [{ hours_utc: ['16:30-00:30', 'at night'], weekdays: [6, 7] }],
          input_cost_per_token: 1e-6,
        },
      },
      'azure_ai/ranged': {
        litellm_provider: 'azure_ai',
        tiered_pricing: [
          { range: [0, 256_000], input_cost_per_token: 5e-8 },
          { range: [256_000, 1e6], input_cost_per_token: 2.5e-7 },
        ],
      },
      'cohere/rerank-x': {
        litellm_provider: 'cohere',
        mode: 'rerank',
        input_cost_per_query: 0.002,
      },
    })
    const { stdout } = await sluice('catalog', 'import', '--from', 'litellm', list)
    const { providers } = JSON.parse(stdout)
    expect(providers).toEqual({
      // At xAI the prices apply to an input of exactly this size, too.
      x_ai: {
        models: {
          'grok-x': { rates: { input: '2' }, tiers: [{ contextOver: 199_999, input: '4' }] },
        },
      },
      anthropic: {
        models: {
          'claude-x': {
            rates: { input: '5' },
            calls: { webSearch: '0.01' },
            multipliers: { geography: { us: '1.1' }, speed: { fast: '2' } },
          },
        },
      },
      'gcp.vertex_ai': {
        models: {
          'gemini-x': {
            rates: { input: '1' },
            calls: { mapSearch: '0.025' },
            multipliers: { geography: { regional: '1.1' } },
          },
        },
      },
      deepseek: {
        models: {
          'deepseek-x': {
            rates: { input: '2' },
            tiers: [{ utc: { hours: '16:30-00:30', days: [6, 7] }, input: '1' }],
          },
        },
      },
      azure: {
        models: {
          ranged: { rates: { input: '0.05' }, tiers: [{ contextOver: 256_000, input: '0.25' }] },
        },
      },
      cohere: { models: { 'rerank-x': { calls: { searchUnit: '0.002' } } } },
    })
  })

  it('reads the lists of models.dev and OpenRouter', async () => {
    const dev = file('dev.json', {
      google: {
        models: {
          g: {
            cost: { input: 0.3, output: 2.5, cache_read: 0.075, context_over_200k: { input: 0.6 } },
            limit: { context: 10, output: 5 },
            modalities: { input: ['text', 'pdf'], output: ['text'] },
            release_date: '2026-11-01',
          },
        },
      },
    })
    const fromDev = await sluice('catalog', 'import', '--from', 'models.dev', dev)
    expect(JSON.parse(fromDev.stdout).providers['gcp.gemini'].models.g).toEqual({
      rates: { input: '0.3', output: '2.5', cacheRead: '0.075' },
      tiers: [{ contextOver: 200_000, input: '0.6' }],
      limits: { context: 10, output: 5 },
      modalities: { input: ['text', 'pdf'], output: ['text'] },
      released: '2026-11-01',
    })
    const pricing = { prompt: '0.00000015', completion: '0.0000006', input_cache_read: '0' }
    const router = file('router.json', { data: [{ id: 'x/Y', pricing, context_length: 9 }] })
    const fromRouter = await sluice('catalog', 'import', '--from', 'openrouter', router)
    expect(JSON.parse(fromRouter.stdout).providers.openrouter.models).toEqual({
      'x/y': { rates: { input: '0.15', output: '0.6', cacheRead: '0' }, limits: { context: 9 } },
    })
  })

  it('exits with 2 if the file is another list', async () => {
    const path = file('other.json', { a: 1 })
    const { code, stderr } = await sluice('catalog', 'import', '--from', 'litellm', path)
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('has no models in the form of litellm'),
    ])
  })
})

describe('sluice catalog show and check', () => {
  it('show rules and prices, and which rules apply to an unknown model', async () => {
    const known = await sluice('catalog', 'show', 'claude-opus-4-7', '--provider', 'anthropic')
    expect(known.stdout).toContain('claude-opus-4-7 at anthropic: known')
    expect(known.stdout).toContain('"cacheWrite1h": "10"')
    expect(known.stdout).toContain('"adaptive"')
    const unknown = await sluice('catalog', 'show', 'claude-opus-11')
    expect(unknown.stdout).toContain(
      'the rules of the newest member of its family apply (claude-opus-5-5)',
    )
    expect(unknown.code).toBe(1)
    const nothing = await sluice('catalog', 'show', 'zyx')
    expect(nothing.stdout).toContain('no family has such a name')
  })

  it('lists models of manifests that have no rules or prices', async () => {
    const backend = (name: string, provider: object) => aiBackend(name, { provider })
    const path = file(
      'all.yaml',
      manifest(
        backend('known', { vendorC: { model: 'claude-opus-4-7' } }),
        backend('later', { vendorC: { model: 'claude-opus-11' } }),
      ),
    )
    const extra = file('extra.json', models({ m: { rates: { input: 0.5 } } }))
    const { stdout, code } = await sluice('catalog', 'check', '-f', path, '--model-catalog', extra)
    expect(code).toBe(1)
    expect(stdout.trim().split('\n')).toEqual([
      `${extra}: providers.openai.models["m"].rates.input: expected a string`,
      'GatewayBackend default/later: claude-opus-11 at anthropic: the rules of claude-opus-5-5 apply, no prices',
    ])
    const priced = models({ 'claude-opus-11': { rates: { input: '5' } } }, 'anthropic')
    const fixed = await sluice(
      'catalog',
      'check',
      '-f',
      path,
      '--model-catalog',
      file('p.json', priced),
    )
    expect(fixed.stdout).toContain('the rules of claude-opus-5-5 apply')
    expect(fixed.stdout).not.toContain('no prices')
  })
})
