/** Budgets of `sluice run` if vendors report nonsense, catalogs have nonsense, and a key is in two Secrets. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { sluice } from '../support/gateway.ts'
import { budget, policy, secret } from '../support/manifests.ts'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { json } from '../support/vendors/vendor.ts'
import { waitFor } from '../support/wait-for.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-nonsense-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const rates = (input: unknown) => ({ rates: { input, output: '1000' } })
const nonsense: Readonly<Record<string, unknown>> = {
  negative: rates('-1'),
  huge: rates('1e300'),
  text: rates('cheap'),
  null: rates(null),
  list: [1],
  number: 7,
}
const catalog = join(folder, 'catalog.json')
writeFileSync(
  catalog,
  JSON.stringify({ providers: { openai: { models: { 'm-1': rates('1000'), ...nonsense } } } }),
)

const window = { unit: 'Month' }
const each = 'request.headers["x-case"]'
const fleet = useFleet(
  ({ at }) => [
    ...['paid', 'keys'].map((name) => reached(name, { vendorA: {}, ...at('a') })),
    [
      budget('tokens', 'HTTPRoute/paid', {
        each,
        limit: { unit: 'Tokens', amount: '1000000' },
        window,
      }),
      budget('money', 'HTTPRoute/paid', { each, limit: { unit: 'USD', amount: '1000' }, window }),
      // Both have the key; the first one by name counts.
      secret('keys-a', { ann: '{"key": "k-twice", "metadata": {"team": "first"}}' }, { app: 'x' }),
      secret('keys-b', { bob: '{"key": "k-twice", "metadata": {"team": "second"}}' }, { app: 'x' }),
      policy('keys', 'HTTPRoute/keys', {
        traffic: { apiKeyAuthentication: { secretSelector: { matchLabels: { app: 'x' } } } },
      }),
      budget('teams', 'HTTPRoute/keys', {
        each: 'apiKey.team',
        limit: { unit: 'Requests', amount: '5' },
        window,
      }),
    ],
  ],
  { SLUICE_MODEL_CATALOG: catalog },
)

const chat = async (name: string, headers: Record<string, string>, body: object = {}) => {
  const response = await fetch(`${fleet.base(name)}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      model: 'm-1',
      messages: [{ role: 'user', content: 'Count to a hundred, please.' }],
      max_tokens: 10,
      ...body,
    }),
  })
  return { status: response.status, text: await response.text() }
}

/** What is spent, by budget and value. */
async function spent(): Promise<Record<string, string>> {
  const { logFile } = fleet.running
  const { stdout } = await sluice(
    'budgets',
    'list',
    '--values',
    '-o',
    'json',
    '--log-file',
    logFile,
  )
  const rows: { budget: string; value: string; spent: string; requests: number }[] =
    JSON.parse(stdout).budgets
  return Object.fromEntries(
    rows.map((row) => [`${row.budget.slice('default/'.length)} ${row.value}`, row.spent]),
  )
}

/** Usage of a response with a text of 6 bytes, and what is charged in tokens. */
const usages: Readonly<Record<string, readonly [usage: unknown, tokens: number | 'estimated']>> = {
  plain: [{ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }, 18],
  none: [undefined, 'estimated'],
  null: [null, 'estimated'],
  empty: [{}, 'estimated'],
  nulls: [{ prompt_tokens: null, completion_tokens: null }, 'estimated'],
  texts: [{ prompt_tokens: '11', completion_tokens: '7' }, 'estimated'],
  negative: [{ prompt_tokens: -11, completion_tokens: -7, total_tokens: -18 }, 'estimated'],
  huge: [{ prompt_tokens: 1e300, completion_tokens: 1e300 }, 'estimated'],
  fraction: [{ prompt_tokens: 10.5, completion_tokens: 6.5 }, 'estimated'],
  absurd: [{ prompt_tokens: 11, completion_tokens: 1.6e13 }, 'estimated'],
  // More than the limit of the request allows is charged, since the vendor bills it.
  over: [{ prompt_tokens: 11, completion_tokens: 5_000, total_tokens: 5_011 }, 5_011],
}

describe('usage that a vendor reports', () => {
  it.each(['whole', 'streamed'])(
    'is charged as it is billed, or else estimated (%s)',
    async (way) => {
      const names = Object.keys(usages)
      for (const name of names) {
        const choice = { message: { role: 'assistant', content: 'Onetwo' }, finish_reason: 'stop' }
        const [usage] = usages[name] ?? []
        const common = { id: 'x', created: 1, model: 'm-1' }
        fleet.vendors.a.answer = (_, response) => {
          if (way === 'whole') {
            const choices = [{ index: 0, ...choice }]
            json(response, 200, { ...common, object: 'chat.completion', choices, usage })
            return
          }
          const chunk = { ...common, object: 'chat.completion.chunk' }
          const delta = { role: 'assistant', content: 'Onetwo' }
          const texts = [
            { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
            { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
            { ...chunk, choices: [], usage },
          ].map((one) => `data: ${JSON.stringify(one)}\n\n`)
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          response.end(`${texts.join('')}data: [DONE]\n\n`)
        }
        const { status, text } = await chat(
          'paid',
          { 'x-case': `${way} ${name}` },
          way === 'whole' ? {} : { stream: true },
        )
        expect([name, status, text]).toEqual([name, 200, expect.anything()])
      }
      const found = await waitFor('all charges', async () => {
        const all = await spent()
        const values = names.map((name) => all[`tokens ${way} ${name}`])
        return values.every((one) => one !== undefined && one !== '0') ? all : undefined
      })
      const charged = Object.fromEntries(
        names.map((name) => [name, Number(found[`tokens ${way} ${name}`])]),
      )
      const expected = names.map((name) => {
        const [, tokens] = usages[name] ?? []
        return [
          name,
          tokens === 'estimated' ? expect.toSatisfy((own: number) => own > 0 && own < 100) : tokens,
        ]
      })
      expect(charged).toEqual(Object.fromEntries(expected))
      // Each token costs 0.001 USD.
      expect(found[`money ${way} plain`]).toBe('0.018')
      expect(found[`money ${way} over`]).toBe('5.011')
    },
    120_000,
  )

  /** Answers with a usage. */
  const report = (output: number) => {
    fleet.vendors.a.answer = (_, response) =>
      json(response, 200, {
        ...{ id: 'x', object: 'chat.completion', created: 1, model: 'm-1' },
        choices: [
          { index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' },
        ],
        usage: { prompt_tokens: 1, completion_tokens: output, total_tokens: output + 1 },
      })
  }

  it('differs from answer to answer, also if requests have no limit or one with a fraction', async () => {
    for (const output of [7, 8, 10, 13, 50, 4, 99, 1, 2, 3]) {
      report(output)
      const fraction = await chat('paid', { 'x-case': 'mixed' }, { max_tokens: 10.25 })
      const { status } = await chat('paid', { 'x-case': 'mixed' }, { max_tokens: undefined })
      expect([status, fraction.status]).toEqual([200, 200])
    }
  })

  it('exhausts a budget if it costs more than an account can hold, and cannot fill it again', async () => {
    report(9e11)
    for (let at = 0; at < 3; at++) await chat('paid', { 'x-case': 'vast' })
    report(1)
    const { status } = await chat('paid', { 'x-case': 'vast' })
    expect(status).toBe(429)
    const found = await waitFor('the charge', async () => (await spent())['money vast'])
    expect(Number(found)).toBeGreaterThan(1_000)
  })

  it.each([true, false])(
    'is estimated if a client leaves before the answer has begun (streamed: %s)',
    async (stream) => {
      const asked = Promise.withResolvers<void>()
      fleet.vendors.a.answer = () => asked.resolve()
      const leaving = new AbortController()
      const value = `left ${stream}`
      const gone = fetch(`${fleet.base('paid')}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'x-case': value },
        body: JSON.stringify({
          model: 'm-1',
          stream,
          max_tokens: 5,
          messages: [{ role: 'user', content: 'word '.repeat(400) }],
        }),
        signal: leaving.signal,
      }).catch(() => 'gone')
      await asked.promise
      leaving.abort()
      expect(await gone).toBe('gone')
      const charged = await waitFor('the charge', async () => {
        const found = (await spent())[`tokens ${value}`]
        return found === '0' ? undefined : found
      })
      expect(Number(charged)).toBeGreaterThanOrEqual(stream ? 500 : 501)
      expect(Number(charged)).toBeLessThan(600)
    },
  )

  it('is nothing for requests that the vendor refuses, also in a budget of requests', async () => {
    fleet.vendors.a.answer = (_, response) => json(response, 400, { error: { message: 'no' } })
    const headers = { authorization: 'Bearer k-twice' }
    for (let at = 0; at < 8; at++) expect((await chat('keys', headers)).status).toBe(400)
    expect((await spent())['teams first'] ?? '0').toBe('0')
  })

  it('leaves a ledger that verifies', async () => {
    const { logFile } = fleet.running
    expect(await sluice('budgets', 'verify', '--log-file', logFile)).toMatchObject({ code: 0 })
  })
})

it.each(Object.keys(nonsense))(
  'a model whose entry in the catalog is nonsense has no price (%s)',
  async (model) => {
    expect(fleet.running.stderr).toContain(model)
    const { status, text } = await chat('paid', { 'x-case': 'nonsense' }, { model })
    expect([status, text]).toEqual([403, expect.stringContaining('default/money does not admit')])
  },
)

it('a key in two Secrets belongs to the first one by name', async () => {
  fleet.forget()
  const { status } = await chat('keys', { authorization: 'Bearer k-twice' })
  expect(status).toBe(200)
  await waitFor('the charge', async () => (await spent())['teams first'] === '1')
  expect(await spent()).not.toHaveProperty('teams second')
})
