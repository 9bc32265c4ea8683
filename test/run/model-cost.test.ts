/** What requests cost: the same for every client format, whole and streamed, at every vendor. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { policy } from '../support/manifests.ts'
import { reached, reachedBackend, useFleet } from '../support/vendors/fleet.ts'
import { openStream, sendEvent } from '../support/vendors/vendor.ts'
import { chunk, failsA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'
import { answersA, answersC, answersD, answersF, usageC } from './model-cost-rig.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-cost-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** One decimal place for each counter, so that a total shows how often each was counted. */
const rates = {
  input: '1',
  cacheRead: '10',
  cacheWrite: '100',
  cacheWrite1h: '1000',
  reasoning: '10000',
  output: '100000',
}
const priced = {
  rates,
  tiers: [{ service: 'priority', input: '3', output: '300000' }],
  calls: { webSearch: '0.5' },
}
const models = (...names: string[]) => ({
  models: Object.fromEntries(names.map((name) => [name, priced])),
})
const catalog = join(folder, 'catalog.json')
writeFileSync(
  catalog,
  JSON.stringify({
    providers: {
      openai: models('m-1'),
      azure: models('m-1'),
      anthropic: models('m-1'),
      'gcp.gemini': models('gemini-sim'),
      'gcp.vertex_ai': models('gemini-sim', 'claude-sim'),
      'aws.bedrock': models('us.amazon.nova-sim-v1:0'),
    },
  }),
)

const attributes = ['cost.total', 'cost.input', 'costRates.output', 'costStatus', 'serviceTier']
const fleet = useFleet(
  ({ at, region }) => [
    reached('a', { vendorA: {}, ...at('a') }),
    reached('b', { vendorB: { endpoint: 'https://unused.example' }, ...at('b') }),
    reached('c', { vendorC: {}, ...at('c') }),
    reached('d', { vendorD: {}, ...at('d') }, { auth: { key: 'AIzaKey' } }),
    reached('e', { vendorE: { projectId: 'my-project', region: 'us-central1' }, ...at('e') }),
    reached('f', { vendorF: { region }, ...at('f') }),
    reachedBackend('pair', {
      groups: [
        { providers: [{ name: 'one', vendorA: { model: 'unlisted' }, ...at('a') }] },
        { providers: [{ name: 'two', vendorC: { model: 'm-1' }, ...at('c') }] },
      ],
    }),
    [
      policy('watched', 'Gateway/edge', {
        frontend: {
          accessLog: {
            attributes: {
              add: attributes.map((name) => ({ name: `x.${name}`, expression: `llm.${name}` })),
            },
          },
        },
      }),
    ],
  ],
  { LOG_FORMAT: 'json', SLUICE_MODEL_CATALOG: catalog },
)
beforeEach(() => fleet.forget())

const hello = [{ role: 'user' as const, content: 'Hello' }]
const requests = {
  Completions: { path: '/v1/chat/completions', body: { messages: hello } },
  Messages: { path: '/v1/messages', body: { messages: hello, max_tokens: 99 } },
  Responses: { path: '/v1/responses', body: { input: 'Hello' } },
}
type Client = keyof typeof requests
const clients = Object.keys(requests) as Client[]

const post = (name: string, client: Client, body: object, signal?: AbortSignal) =>
  fetch(`${fleet.base(name)}${requests[client].path}`, {
    method: 'POST',
    body: JSON.stringify({ ...requests[client].body, ...body }),
    ...(signal && { signal }),
  })

type Line = Readonly<Record<string, unknown>>

/** Sends a request, and returns its line in the access log. */
async function lineOf(name: string, client: Client, body: object): Promise<Line> {
  const from = fleet.running.stdout.length
  const response = await post(name, client, body)
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return lineAfter(from)
}

async function lineAfter(from: number): Promise<Line> {
  const text = await waitFor('the line', () => {
    const lines = fleet.running.stdout.slice(from).split('\n').slice(0, -1)
    return lines.find((line) => line.includes('"scope":"request"'))
  })
  return JSON.parse(text) as Line
}

const costsOf = async (name: string, client: Client, model: string, more: object = {}) => {
  const whole = await lineOf(name, client, { model, ...more })
  const streamed = await lineOf(name, client, { model, stream: true, ...more })
  return [whole, streamed].map((line) => `${line['cost.total']} ${line['cost.status']}`)
}

/** 4 of text, 2 read, 3 written; 2 of thinking, 5 of text. */
const usd = (micros: number) => `${micros / 1e6} exact`
const microsA = 4 * 1 + 2 * 10 + 3 * 100 + 2 * 10_000 + 5 * 100_000
const microsC = 4 * 1 + 2 * 10 + 2 * 100 + 1 * 1_000 + 2 * 10_000 + 5 * 100_000
const costA = usd(microsA)
const costC = usd(microsC)
const costD = usd(5 * 1 + 2 * 10 + 2 * 10_000 + 5 * 100_000)
const costF = usd(4 * 1 + 2 * 10 + 2 * 100 + 1 * 1_000 + 7 * 100_000)

const ways = [
  { name: 'a', model: 'm-1', answer: answersA(), cost: costA },
  { name: 'b', model: 'm-1', answer: answersA(), cost: costA },
  { name: 'c', model: 'm-1', answer: answersC(), cost: costC },
  { name: 'd', model: 'gemini-sim', answer: answersD, cost: costD },
  { name: 'e', model: 'google/gemini-sim', answer: answersD, cost: costD },
  { name: 'e', model: 'claude-sim', answer: answersC({}, 'claude-sim'), cost: costC },
  { name: 'f', model: 'us.amazon.nova-sim-v1:0', answer: answersF, cost: costF },
] as const

describe('the cost of a request', () => {
  it.each(ways.flatMap((way) => clients.map((client) => ({ ...way, client }))))(
    'is the same whole and streamed: $client, vendor $name, $model',
    async ({ name, model, answer, cost, client }) => {
      fleet.vendors[name].answer = answer
      expect(await costsOf(name, client, model)).toEqual([cost, cost])
    },
  )

  it.each(['alone', 'with choices', 'in every chunk'] as const)(
    'counts the last usage of a stream once, which stands %s',
    async (position) => {
      fleet.vendors.a.answer = answersA({}, position)
      for (const client of ['Completions', 'Messages'] as const) {
        const line = await lineOf('a', client, { model: 'm-1', stream: true })
        expect(`${line['cost.total']} ${line['cost.status']}`).toBe(costA)
      }
    },
  )

  it('includes compactions, which the totals of vendor C leave out', async () => {
    const iterations = [
      { type: 'compaction', input_tokens: 3, output_tokens: 2, cache_read_input_tokens: 1 },
      { type: 'message', ...usageC },
    ]
    fleet.vendors.c.answer = answersC({ iterations })
    const cost = usd(microsC + 3 * 1 + 2 * 100_000 + 1 * 10)
    for (const client of clients) {
      expect(await costsOf('c', client, 'm-1'), client).toEqual([cost, cost])
    }
  })

  it('includes cache writes of later iterations, which the first report of a stream lacks', async () => {
    // LiteLLM 42663: the lifetimes are those of the first iteration, and the total is that of all.
    fleet.vendors.c.answer = answersC({ cache_creation_input_tokens: 30 })
    const cost = usd(microsC + 27 * 100)
    expect(await costsOf('c', 'Messages', 'm-1')).toEqual([cost, cost])
  })

  it('includes the searches that a vendor ran', async () => {
    fleet.vendors.a.answer = answersA()
    const tools = [{ type: 'web_search' }]
    const cost = usd(microsA + 2 * 500_000)
    expect(await costsOf('a', 'Responses', 'm-1', { tools })).toEqual([cost, cost])
    fleet.vendors.c.answer = answersC({ server_tool_use: { web_search_requests: 2 } })
    const costOfC = usd(microsC + 2 * 500_000)
    expect(await costsOf('c', 'Messages', 'm-1')).toEqual([costOfC, costOfC])
    expect(await costsOf('c', 'Completions', 'm-1')).toEqual([costOfC, costOfC])
  })

  it('has the price of the service that the response names, not of the requested one', async () => {
    const cost = usd(4 * 3 + 2 * 10 + 3 * 100 + 2 * 10_000 + 5 * 300_000)
    fleet.vendors.a.answer = answersA({ service_tier: 'priority' })
    for (const client of clients) {
      const more = client === 'Messages' ? {} : { service_tier: 'auto' }
      expect(await costsOf('a', client, 'm-1', more), client).toEqual([cost, cost])
    }
    fleet.vendors.a.answer = answersA({ service_tier: 'default' })
    const asked = { service_tier: 'priority' }
    expect(await costsOf('a', 'Completions', 'm-1', asked)).toEqual([costA, costA])
  })

  it('is unknown for a model that no list has, and is counted as unknown', async () => {
    fleet.vendors.a.answer = answersA({ model: 'unlisted' })
    const line = await lineOf('a', 'Completions', { model: 'unlisted' })
    expect(line['cost.status']).toBe('unknown')
    expect(line).not.toHaveProperty('cost.total')
    expect(line).not.toHaveProperty(['x.cost.total'])
  })

  it('has the price of the model that was sent if the vendor names another one', async () => {
    fleet.vendors.a.answer = answersA({ model: 'm-1-internal-name' })
    expect(await costsOf('a', 'Completions', 'm-1')).toEqual([costA, costA])
  })

  it('has the price of the provider that answered after a failure of another', async () => {
    fleet.vendors.a.answer = failsA(500, 'broken')
    fleet.vendors.c.answer = answersC()
    const line = await lineOf('pair', 'Completions', { model: 'm-1' })
    expect(`${line['cost.total']} ${line['cost.status']}`).toBe(costC)
    expect(line['model.failed']).toContain('one')
  })

  it('is estimated if the client leaves before the vendor reports its usage', async () => {
    fleet.vendors.a.answer = (_, response) => {
      openStream(response)
      sendEvent(response, chunk('m-1', { role: 'assistant', content: 'Hello there' }))
    }
    const from = fleet.running.stdout.length
    const controller = new AbortController()
    const body = { model: 'm-1', stream: true }
    const response = await post('a', 'Completions', body, controller.signal)
    await response.body?.getReader().read()
    controller.abort()
    const line = await lineAfter(from)
    // "Hello" is estimated to have two tokens, and "Hello there" three.
    expect(line).toMatchObject({ 'cost.status': 'estimated', 'cost.total': '0.300002' })
    expect(line).not.toHaveProperty(['gen_ai.usage.input_tokens'])
  })

  it('is in expressions, as numbers', async () => {
    fleet.vendors.a.answer = answersA({ service_tier: 'priority' })
    expect(await lineOf('a', 'Completions', { model: 'm-1' })).toMatchObject({
      'x.cost.total': 1.520332,
      'x.cost.input': 0.000012,
      'x.costRates.output': 300_000,
      'x.costStatus': 'exact',
      'cost.rate.input': '3',
      'cost.rate.cacheRead': '10',
      'model.service_tier': 'priority',
    })
  })
})
