/** Budgets of `sluice run`: what is admitted, charged, refused, and kept over restarts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  budget,
  gateway,
  hostOf,
  httpRoute,
  manifest,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { json } from '../support/vendors/vendor.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream('upstream', (request, response) => {
  response.statusCode = Number(request.headers['x-answer'] ?? 200)
  setTimeout(() => response.end('hello'), Number(request.headers['x-delay'] ?? 0))
})
const port = await freePort()
const route = (name: string) =>
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] })
const requests = (amount: number) => ({ unit: 'Requests', amount: `${amount}` })
const month = { unit: 'Month', timeZone: 'Europe/Berlin' }

const running = useGateway(() => ({
  manifests: {
    'all.yaml': manifest(
      gateway(port),
      staticBackend('main', upstream.port),
      ...['one', 'teams', 'users', 'both', 'failing', 'audit', 'changed', 'rest'].map(route),
      budget('one', 'HTTPRoute/one', { limit: requests(10), window: month }),
      budget('rest', 'HTTPRoute/rest', { limit: requests(3), window: month }),
      budget('teams', 'HTTPRoute/teams', {
        each: 'request.headers["x-team"]',
        limit: requests(2),
        overrides: [{ value: 'research', amount: '4' }],
        window: month,
      }),
      budget('users', 'HTTPRoute/users', {
        each: 'json(request.body).user',
        limit: requests(2),
        window: month,
      }),
      budget('wide', 'HTTPRoute/both', { limit: requests(100), window: month }),
      budget('narrow', 'HTTPRoute/both', {
        when: 'request.method == "POST"',
        limit: requests(1),
        window: { type: 'Rolling', unit: 'Day' },
      }),
      budget('failing', 'HTTPRoute/failing', { limit: requests(2), window: month }),
      budget('audit', 'HTTPRoute/audit', {
        limit: requests(1),
        window: month,
        onExceeded: 'Audit',
      }),
    ),
    'changed.yaml': manifest(
      budget('changed', 'HTTPRoute/changed', { limit: requests(3), window: month }),
    ),
  },
  args: ['--workers', '2'],
}))

const ask = (name: string, headers: Record<string, string> = {}, method = 'GET') =>
  running.send(port, { host: hostOf(name), headers, method })

const statuses = async (name: string, count: number, headers: Record<string, string> = {}) =>
  Promise.all(Array.from({ length: count }, async () => (await ask(name, headers)).status))

const admitted = async (...of: Parameters<typeof statuses>) =>
  (await statuses(...of)).filter((status) => status === 200).length

describe('a budget of requests', () => {
  it('admits exactly its amount of many parallel requests on several workers', async () => {
    expect(await admitted('one', 300, { 'x-delay': '50' })).toBe(10)
  })

  it('names itself in the refusal, and says when it is renewed', async () => {
    const refused = await ask('one')
    expect(refused.status).toBe(429)
    expect(refused.body).toMatch(
      /^budget default\/one of 10 requests per month is exhausted; it is renewed at 20\d\d-\d\d-\d\dT2[23]:00:00\.000Z$/,
    )
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  })

  it('keeps its balance over a restart, and over the death of the process', async () => {
    await running.stop()
    await running.start()
    expect(await admitted('one', 3)).toBe(0)
    await running.kill()
    await running.start()
    expect(await admitted('one', 3)).toBe(0)
  })

  it('admits what is left of its amount after a restart', async () => {
    expect(await admitted('rest', 2)).toBe(2)
    await running.stop()
    await running.start()
    expect(await admitted('rest', 5)).toBe(1)
    expect((await ask('rest')).body).toContain('; it is renewed at ')
  })

  it('has one amount for each value, and another one for values with an override', async () => {
    expect(await admitted('teams', 5, { 'x-team': 'sales' })).toBe(2)
    expect(await admitted('teams', 5, { 'x-team': 'legal' })).toBe(2)
    expect(await admitted('teams', 8, { 'x-team': 'research' })).toBe(4)
    expect(await admitted('teams', 5)).toBe(2)
  })

  it('has one amount for each value of a field of the body', async () => {
    const asUser = (body: string) =>
      running.send(port, { host: hostOf('users'), method: 'POST', body })
    const statusesOf = async (body: string) => [
      (await asUser(body)).status,
      (await asUser(body)).status,
      (await asUser(body)).status,
    ]
    expect(await statusesOf('{"user":"a"}')).toEqual([200, 200, 429])
    expect(await statusesOf('{"user":"b"}')).toEqual([200, 200, 429])
    expect(await statusesOf('{}')).toEqual([200, 200, 429])
    expect(await statusesOf('no JSON')).toEqual([500, 500, 500])
  })

  it('applies together with others, and only to requests that it selects', async () => {
    const post = () => ask('both', {}, 'POST')
    expect((await post()).status).toBe(200)
    const refused = await post()
    expect(refused.body).toBe('budget default/narrow of 1 requests per day is exhausted')
    expect(refused.headers['retry-after']).toBe('60')
    expect(await admitted('both', 20)).toBe(20)
  })

  it('does not count requests that the upstream fails', async () => {
    for (let at = 0; at < 6; at++) {
      expect(await statuses('failing', 1, { 'x-answer': '503' })).toEqual([503])
    }
    expect(await admitted('failing', 4)).toBe(2)
  })

  it('refuses nothing with onExceeded: Audit', async () => {
    expect(await admitted('audit', 10)).toBe(10)
  })

  it('refuses from then on if its amount becomes smaller, and admits again if it grows', async () => {
    expect(await admitted('changed', 2)).toBe(2)
    const set = (amount: number) =>
      running.write(
        'changed.yaml',
        manifest(
          budget('changed', 'HTTPRoute/changed', { limit: requests(amount), window: month }),
        ),
      )
    set(1)
    await waitFor('the smaller amount', async () =>
      (await ask('changed')).body.includes('of 1 requests'),
    )
    expect(await admitted('changed', 5)).toBe(0)
    set(1_000)
    await waitFor('the greater amount', async () => (await ask('changed')).status === 200)
  })
})

const folder = mkdtempSync(join(tmpdir(), 'sluice-budgets-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const catalog = join(folder, 'catalog.json')
writeFileSync(
  catalog,
  JSON.stringify({
    providers: { openai: { models: { 'm-1': { rates: { input: '1000', output: '1000' } } } } },
  }),
)

/** Types of paths, for the backends that have others than the usual ones. */
const routes: Readonly<Record<string, object>> = {
  raw: { '/v1/chat/completions': 'Passthrough' },
  several: {
    '/v1/chat/completions': 'Completions',
    '/v1/completions': 'TextCompletions',
    ':generateContent': 'GenerateContent',
  },
}

/** Policies that decide the output limit. */
const limits = {
  lowered: { overrides: [{ field: 'max_tokens', value: 5 }] },
  raised: { overrides: [{ field: 'max_tokens', value: 1_000 }] },
  added: { defaults: [{ field: 'max_tokens', value: 1_000 }] },
}

const fleet = useFleet(
  ({ at }) => [
    ...['tokens', 'money', 'several', 'two', 'unpriced', 'counted', 'parallel', 'raw'].map((name) =>
      reached(
        name,
        { vendorA: {}, ...at('a') },
        name in routes ? { ai: { routes: routes[name] } } : {},
      ),
    ),
    ...Object.entries(limits).map(([name, ai]) =>
      reached(name, { vendorA: {}, ...at('a') }, { ai }),
    ),
    reached(
      'translated',
      { vendorC: {}, ...at('c') },
      { ai: { overrides: [{ field: 'max_completion_tokens', value: 5 }] } },
    ),
    ['lowered', 'raised', 'added', 'translated'].map((name) =>
      budget(name, `HTTPRoute/${name}`, {
        limit: { unit: 'Tokens', amount: '100' },
        window: month,
      }),
    ),
    [
      // A response of the simulator has 11 input tokens and 7 output tokens.
      budget('tokens', 'HTTPRoute/tokens', {
        limit: { unit: 'Tokens', amount: '100' },
        window: month,
      }),
      budget('money', 'HTTPRoute/money', {
        each: 'llm.requestModel',
        limit: { unit: 'USD', amount: '0.1' },
        window: month,
      }),
      budget('several', 'HTTPRoute/several', {
        limit: { unit: 'USD', amount: '0.1' },
        window: month,
      }),
      ...['two-a', 'two-b'].map((name) =>
        budget(name, 'HTTPRoute/two', {
          each: 'llm.requestModel',
          limit: { unit: 'USD', amount: '1' },
          window: month,
        }),
      ),
      budget('unpriced', 'HTTPRoute/unpriced', {
        limit: { unit: 'USD', amount: '1' },
        window: month,
      }),
      budget('counted', 'HTTPRoute/counted', {
        limit: { unit: 'USD', amount: '1' },
        window: month,
        unpriced: 'CountAs',
        unpricedAmount: '0.5',
      }),
      budget('parallel', 'HTTPRoute/parallel', { limit: requests(10), window: month }),
      budget('raw', 'HTTPRoute/raw', { limit: { unit: 'Tokens', amount: '100' }, window: month }),
    ],
  ],
  { SLUICE_MODEL_CATALOG: catalog },
)

const chat = async (name: string, body: object = {}) => {
  const response = await fetch(`${fleet.base(name)}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      model: 'm-1',
      messages: [{ role: 'user', content: 'Hi' }],
      max_tokens: 10,
      ...body,
    }),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const admittedChats = async (name: string, count: number, body: object = {}) => {
  let found = 0
  for (let at = 0; at < count; at++) if ((await chat(name, body)).status === 200) found++
  return found
}

describe('a budget of requests to models', () => {
  it('charges the tokens that the provider reports, and nothing for failures', async () => {
    fleet.forget()
    fleet.vendors.a.next.push(
      (_, response) => json(response, 500, { error: { message: 'no' } }),
      (_, response) => json(response, 500, { error: { message: 'no' } }),
    )
    expect(await admittedChats('tokens', 2)).toBe(0)
    // Two requests of 18 tokens leave 64; each reserves about 40, so that a third one ends at 54.
    const first = await admittedChats('tokens', 20)
    expect(first).toBeGreaterThanOrEqual(3)
    expect(first).toBeLessThanOrEqual(5)
    const streamed = await chat('tokens', { stream: true })
    expect(streamed.status).toBe(429)
  })

  it('charges what a request costs, for each model', async () => {
    // 18 tokens cost 0.018 USD.
    const found = await admittedChats('money', 12)
    expect(found).toBeGreaterThanOrEqual(3)
    expect(found).toBeLessThanOrEqual(5)
    const refused = await chat('money')
    expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([429, 'false'])
    const { error } = JSON.parse(refused.text)
    expect(error.message).toMatch(/^budget default\/money of 0\.1 USD per month is exhausted/)
  })

  it('reserves every answer that a request asks for, and the largest of its limits', async () => {
    const post = async (path: string, body: object) => {
      const url = `${fleet.base('several')}${path}`
      return (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).status
    }
    const contents = [{ parts: [{ text: 'Hi' }] }]
    const asked = [
      (await chat('several', { n: 100 })).status,
      (await chat('several', { max_tokens: 1, max_completion_tokens: 1_000 })).status,
      await post('/v1/completions', { model: 'm-1', prompt: 'Hi', max_tokens: 1, best_of: 100 }),
      await post('/v1/completions', {
        model: 'm-1',
        prompt: Array.from({ length: 20 }, () => 'Hi'),
        max_tokens: 10,
      }),
      await post('/v1beta/models/m-1:generateContent', {
        contents,
        generationConfig: { maxOutputTokens: 1, candidateCount: 100 },
      }),
      // Vendors also read snake case, and numbers that are texts.
      await post('/v1beta/models/m-1:generateContent', {
        contents,
        generation_config: { max_output_tokens: 1_000 },
      }),
      await post('/v1beta/models/m-1:generateContent', {
        contents,
        generation_config: { maxOutput_tokens: 1, candidate_count: 100 },
      }),
      (await chat('several', { max_tokens: '1000' })).status,
      (await chat('several', { n: '100' })).status,
    ]
    expect(asked).toEqual([429, 429, 429, 429, 429, 429, 429, 429, 429])
    expect((await chat('several', { n: 2 })).status).toBe(200)
  })

  it('reserves the output limit that the provider gets, whatever the client has asked for', async () => {
    const asked = [
      (await chat('lowered', { max_tokens: 1_000 })).status,
      (await chat('raised')).status,
      (await chat('added', { max_tokens: undefined })).status,
      (await chat('added')).status,
      (await chat('translated', { max_tokens: 1_000 })).status,
    ]
    expect(asked).toEqual([200, 429, 429, 200, 200])
  })

  it('knows the price for every budget, even if the first request has to wait for an account', async () => {
    expect((await chat('two')).status).toBe(200)
  })

  it('refuses a model without a price, or charges it a fixed amount', async () => {
    const refused = await chat('unpriced', { model: 'unknown-model' })
    expect(refused.status).toBe(403)
    expect(JSON.parse(refused.text).error.message).toMatch(/default\/unpriced does not admit/)
    expect(await admittedChats('counted', 4, { model: 'unknown-model' })).toBe(2)
  })

  it('refuses requests that the gateway does not read, since their tokens are unknown', async () => {
    expect((await chat('raw')).status).toBe(403)
  })

  it('admits exactly 10 of 1,000 parallel calls of an official SDK, and stops it at once', async () => {
    let sent = 0
    const counted: typeof fetch = (...request) => {
      sent++
      return fetch(...request)
    }
    const client = new OpenAI({
      baseURL: `${fleet.base('parallel')}/v1`,
      apiKey: 'any',
      fetch: counted,
    })
    const call = () =>
      client.chat.completions.create({ model: 'm-1', messages: [{ role: 'user', content: 'Hi' }] })
    const results = await Promise.allSettled(Array.from({ length: 1_000 }, call))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(10)
    const reasons = results.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    expect(new Set(reasons.map(({ status }) => status))).toEqual(new Set([429]))
    expect(String(reasons[0]?.message)).toContain('budget default/parallel')
    sent = 0
    await expect(call()).rejects.toMatchObject({ status: 429 })
    expect(sent).toBe(1)
  })
})
