/** `sluice spend`: what recorded requests have cost, by anything, and beside the bills of vendors. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  aiBackend,
  budget,
  gateway,
  manifest,
  policy,
  routeByPath,
  secret,
} from '../support/manifests.ts'
import { json } from '../support/vendors/vendor.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { startVendorC } from '../support/vendors/vendor-c.ts'
import { waitFor } from '../support/wait-for.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-spend-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function file(name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const provider = (models: object) => ({ models })
const catalogOf = (input: string) => ({
  providers: {
    openai: provider({
      'm-1': { rates: { input, output: '8', cacheRead: '0.5' } },
      small: { rates: { input: '0.1', output: '0.4' } },
    }),
    anthropic: provider({ 'c-1': { rates: { input: '3', output: '15', cacheWrite: '3.75' } } }),
  },
})
const catalog = file('catalog.json', catalogOf('2'))

const port = await freePort()
const records = join(folder, 'records')
const a = useFixture(startVendorA)
const c = useFixture(startVendorC)
const keyOf = (key: string, team: string) => JSON.stringify({ key, metadata: { team } })
const running = useGateway(() => {
  const reached = (name: string, ai: object, routes: object) => [
    aiBackend(name, { provider: ai }, { ai: { routes } }),
    routeByPath(name),
  ]
  return {
    args: ['--model-catalog', catalog, '--record', 'all', '--record-dir', records],
    manifests: {
      'all.yaml': manifest(
        gateway(port),
        secret('keys', { ann: keyOf('key-of-ann', '=red'), bob: keyOf('key-of-bob', 'blue') }),
        policy('edge', 'Gateway/edge', {
          traffic: {
            apiKeyAuthentication: { secretRef: { name: 'keys' } },
            identity: { dimensions: { team: 'apiKey.team', user: 'apiKey.id' } },
          },
        }),
        ...reached(
          'a',
          { vendorA: {}, host: '127.0.0.1', port: a.port },
          { '/v1/chat/completions': 'Completions' },
        ),
        ...reached(
          'c',
          { vendorC: {}, host: '127.0.0.1', port: c.port },
          { '/v1/messages': 'Messages' },
        ),
      ),
    },
  }
})

const messages = [{ role: 'user', content: 'Hello' }]

async function ask(path: string, key: string, model: string): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages, max_tokens: 9 }),
  })
  expect(response.status, await response.text()).toBe(200)
}

const spend = (...args: string[]) => sluice('spend', '--record-dir', records, ...args)
const today = new Date().toISOString().slice(0, 10)

beforeAll(async () => {
  a.answer = ({ body }, response) =>
    json(response, 200, {
      id: 'x',
      object: 'chat.completion',
      created: 1,
      model: body.model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: 1_000,
        completion_tokens: 100,
        total_tokens: 1_100,
        prompt_tokens_details: { cached_tokens: 400 },
      },
    })
  c.answer = (_, response) =>
    json(response, 200, {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'c-1',
      content: [{ type: 'text', text: 'Hi' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 10, cache_creation_input_tokens: 200, output_tokens: 20 },
    })
  const chat = '/a/v1/chat/completions'
  await ask(chat, 'key-of-ann', 'm-1')
  await ask(chat, 'key-of-ann', 'm-1')
  await ask(chat, 'key-of-bob', 'm-1')
  await ask(chat, 'key-of-bob', 'unlisted')
  await ask('/c/v1/messages', 'key-of-bob', 'c-1')
  await waitFor('the records', async () => {
    const { stdout } = await spend('-o', 'json', '--by', 'provider')
    return stdout !== '' && JSON.parse(stdout).total.requests === 5
  })
})

/** 600 at 2 USD, 400 at 0.5, 100 at 8, per million. */
const costA = '0.0022'
/** 10 at 3 USD, 200 at 3.75, 20 at 15, per million. */
const costC = '0.00108'

const usageOfDay = (results: readonly object[]) => ({
  object: 'page',
  data: [{ object: 'bucket', start_time: Date.parse(today) / 1_000, results }],
})
const usageA = (model: string, requests: number, more: object = {}) => ({
  object: 'organization.usage.completions.result',
  model,
  num_model_requests: requests,
  input_tokens: requests * 1_000,
  output_tokens: requests * 100,
  input_cached_tokens: requests * 400,
  ...more,
})
const ofC = (result: object) => ({
  data: [{ starting_at: `${today}T00:00:00Z`, ending_at: 'x', results: [result] }],
})

describe('sluice spend', () => {
  it('adds up costs by model, and says what has no known price', async () => {
    const { code, stdout, stderr } = await spend()
    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(stdout).toMatch(/openai +m-1 +3 +3000 +1200 +0 +300 +0\.006600 +0\n/)
    expect(stdout).toMatch(/anthropic +c-1 +1 +210 +0 +200 +20 +0\.001080 +0\n/)
    expect(stdout).toMatch(/openai +unlisted +1 +1000 +400 +0 +100 +0\.000000 +1\n/)
    expect(stdout).toMatch(/total +- +5 .*0\.007680 +1\n/)
    expect(stdout).toContain('Requests: 1 without a known price: their cost is not in the sums.')
  })

  it('adds up by dimensions of the identity and by day, exactly, in CSV and JSON', async () => {
    const csv = await spend('--by', 'team,day', '-o', 'csv')
    expect(csv.stdout.split('\n').filter((line) => line !== '')).toEqual([
      'team,day,requests,inputTokens,cacheReadTokens,cacheWriteTokens,outputTokens,costUsd,unknown,partial,estimated,hits,savedUsd',
      // A spreadsheet must not take a name for a formula.
      `'=red,${today},2,2000,800,0,200,0.0044,0,0,0,0,0`,
      `blue,${today},3,2210,800,200,220,0.00328,1,0,0,0,0`,
    ])
    const { stdout } = await spend('--by', 'user', '--model', 'c-1', '-o', 'json')
    expect(JSON.parse(stdout)).toMatchObject({
      rows: [{ user: 'bob', requests: 1, costUsd: costC }],
      total: { requests: 1, costUsd: costC, unknown: 0 },
    })
  })

  it('shows what other prices and other models would have cost', async () => {
    const dearer = file('dearer.json', catalogOf('4'))
    const { stdout } = await spend('--model-catalog', dearer, '-o', 'json')
    const { rows } = JSON.parse(stdout) as { rows: Record<string, unknown>[] }
    const rowOf = (model: string) => rows.find((row) => row.model === model)
    expect(rowOf('m-1')).toMatchObject({ costUsd: '0.0066', whatIf: { costUsd: '0.0102' } })
    expect(rowOf('c-1')).toMatchObject({ whatIf: { costUsd: costC, unknown: 0 } })
    const as = ['--as', 'm-1=small', '--as', 'unlisted=anthropic/c-1']
    const other = await spend('--model-catalog', catalog, ...as)
    expect(other.stdout).toMatch(/openai +m-1 .*0\.006600 +0 +0\.000420 +-0\.006180 +0\n/)
    expect(other.stdout).toMatch(/openai +unlisted .*0\.000000 +1 +0\.004500 +\+0\.004500 +0\n/)
  })

  it('agrees with exports of usage that have the same numbers', async () => {
    const exportA = file('openai.json', usageOfDay([usageA('m-1', 3), usageA('unlisted', 1)]))
    const exportC = file(
      'anthropic.json',
      ofC({
        model: 'c-1',
        uncached_input_tokens: 10,
        cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 0 },
        cache_read_input_tokens: 0,
        output_tokens: 20,
      }),
    )
    const { code, stdout, stderr } = await spend('--compare', exportA, '--compare', exportC)
    expect(stderr).toBe('')
    expect(stdout).toBe('0 of 8 sums differ.\n')
    expect(code).toBe(0)
  })

  it('lists differences by model and day', async () => {
    const more = usageA('m-1', 4, { output_tokens: 300 })
    const bill = file('more.json', usageOfDay([more, usageA('elsewhere', 1)]))
    const { code, stdout } = await spend('--compare', bill, '-o', 'csv')
    expect(code).toBe(1)
    expect(stdout.split('\n').slice(0, -1)).toEqual([
      'provider,day,model,what,recorded,billed,difference,unknown',
      `openai,${today},elsewhere,requests,0,1,+1,0`,
      `openai,${today},elsewhere,inputTokens,0,1000,+1000,0`,
      `openai,${today},elsewhere,outputTokens,0,100,+100,0`,
      `openai,${today},m-1,requests,3,4,+1,0`,
      `openai,${today},m-1,inputTokens,3000,4000,+1000,0`,
      `openai,${today},unlisted,requests,1,0,-1,0`,
      `openai,${today},unlisted,inputTokens,1000,0,-1000,0`,
      `openai,${today},unlisted,outputTokens,100,0,-100,0`,
    ])
  })

  it('compares costs in USD and in cents, and names requests without a price', async () => {
    const costs = (value: number) =>
      usdPage([
        { line_item: 'm-1, input', amount: { value, currency: 'usd' } },
        { line_item: 'm-1, output', amount: { value: 2.4e-3, currency: 'usd' } },
      ])
    const usdPage = (results: readonly object[]) =>
      usageOfDay(results.map((one) => ({ object: 'organization.costs.result', ...one })))
    const right = file('costs.json', costs(0.0042))
    const cents = file('cents.json', ofC({ currency: 'USD', amount: '0.108', model: 'c-1' }))
    const agreed = await spend('--compare', right, '--compare', cents)
    expect(agreed.stdout).toMatch(/unlisted +cost +0\.000000 +0\.000000 +0\.000000 +1\n/)
    expect(agreed.stdout).toContain('1 of 3 sums differ.')
    const wrong = await spend('--compare', file('wrong.json', costs(0.0043)), '-o', 'json')
    expect(JSON.parse(wrong.stdout).differences[0]).toMatchObject({
      model: 'm-1',
      what: 'cost',
      recorded: '0.0066',
      billed: '0.0067',
      difference: '+0.0001',
    })
  })

  it('refuses what is not a bill, a dimension, or a pair of models', async () => {
    const wrong = await spend('--compare', file('wrong.txt', 'a,b\n1,2\n'))
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toContain('wrong.txt: neither a page of the usage or costs of OpenAI')
    expect((await spend('--by', 'team,')).stderr).toContain('"" is not the name of a dimension')
    expect((await spend('--as', 'm-1')).stderr).toContain('--as m-1 is not MODEL=OTHER')
    expect((await spend('--until', 'soon')).code).toBe(2)
    expect((await spend('--until', '1h')).code).toBe(1)
  })

  it('is explained for one request, with price and rates', async () => {
    const { stdout: all } = await sluice('decisions', '--record-dir', records, '-o', 'json')
    const decisions = all
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
    const one = decisions.find(({ details }) => details['gen_ai.response.model'] === 'm-1')
    expect(one.details['cost.total']).toBe(costA)
    const { stdout } = await sluice('explain', 'request', '--id', one.id, '--record-dir', records)
    expect(stdout).toMatch(/cost +0\.0022 USD +\(exact\)/)
    expect(stdout).toMatch(/cacheRead +400 tokens +0\.5 USD per million +0\.0002 USD/)
  })
})

describe('sluice what-if with a new budget', () => {
  const window = { unit: 'Month' }
  const trial = (...args: string[]) => {
    const file = join(folder, 'trial.yaml')
    const usd = (amount: string) => ({ limit: { unit: 'USD', amount }, window })
    writeFileSync(
      file,
      manifest(
        budget('teams', 'HTTPRoute/a', { each: 'apiKey.team', ...usd('0.003') }),
        budget('subjects', 'HTTPRoute/a', { each: 'jwt.sub', ...usd('1') }),
        budget('small', 'HTTPRoute/c', { when: 'llm.requestModel == "c-1"', ...usd('0.000001') }),
        budget('unused', 'HTTPRoute/c', { when: 'llm.requestModel == "m-1"', ...usd('1') }),
      ),
    )
    const common = ['--log-file', running.logFile, '--record-dir', records, '--overlay', '-f', file]
    return sluice('what-if', ...common, ...args)
  }

  it('lists whom it would have refused since when, and what the records cannot show', async () => {
    const { code, stdout } = await trial('-o', 'json')
    expect(code).toBe(1)
    const of = (name: string) =>
      JSON.parse(stdout).budgets.find((one: { budget: string }) => one.budget === `default/${name}`)
    // A request for m-1 costs 0.0022 USD; the model `unlisted` has no price.
    const one = { limit: '0.003', admittedAmount: '0.0022' }
    expect(of('teams')).toMatchObject({
      unit: 'USD',
      requests: 3,
      refused: 1,
      values: [
        {
          value: '=red',
          requests: 2,
          refused: 1,
          refusedAmount: '0.0022',
          firstRefusal: expect.stringMatching(/^20.*Z$/),
          ...one,
        },
        { value: 'blue', requests: 1, refused: 0, refusedAmount: '0', ...one },
      ],
      limits: expect.arrayContaining([
        '1 requests have no known cost, and would be refused with 403',
      ]),
    })
    expect(of('subjects')).toMatchObject({
      requests: 0,
      limits: expect.arrayContaining([
        '4 requests are not counted: records have no jwt; a dimension of identity with jwt.sub has',
      ]),
    })
    expect(of('small')).toMatchObject({ requests: 1, refused: 1 })
    expect(of('unused')).toMatchObject({ requests: 0, refused: 0 })
    const text = await trial()
    expect(text.stdout).toMatch(
      /GatewayBudget default\/teams would refuse 1 of 3 requests\n +"=red": 1 of 2 from 20\S+ on; 0\.0022 of 0\.003 USD are admitted, 0\.0022 refused\n/,
    )
  })

  it('only tries records of a range', async () => {
    const { stdout } = await trial('-o', 'json', '--until', '2020-01-01')
    const { requests, budgets } = JSON.parse(stdout)
    expect(requests.total).toBe(0)
    expect(budgets.map((one: { requests: number }) => one.requests)).toEqual([0, 0, 0, 0])
    expect(budgets[0].limits).toContain('there are no records')
  })
})
