/** Guard services on streams: clients get what has passed, in every format, while later text waits for its check. */
import { createServer } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, routeByPath, staticBackend, toBackend } from '../support/manifests.ts'
import { acts, masks, shown, startWebhook } from '../support/vendors/guard-services.ts'
import { mails, startGuardVendor } from '../support/vendors/guard-vendors.ts'
import { json } from '../support/vendors/vendor.ts'
import { chunk } from '../support/vendors/vendor-a.ts'

/** The next answer of the vendor: what it sends at once, and the rest, which waits until the client has some text. */
interface Script {
  readonly before: readonly string[]
  readonly after?: readonly string[]
  readonly breaks?: boolean
  /** Deltas before the texts. */
  readonly deltas?: readonly object[]
}
let script: Script
let proceed = Promise.withResolvers<void>()
let aborted = Promise.withResolvers<void>()
const vendor = useListening(
  createServer((request, response) => {
    request.resume().on('end', async () => {
      response.once('close', () => {
        if (!response.writableFinished) aborted.resolve()
      })
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const send = (event: object | string) =>
        response.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`)
      const { before, after, breaks = false, deltas = [] } = script
      // Some vendors begin with an event without choices.
      send({ ...chunk('m', {}), choices: [], prompt_filter_results: [] })
      for (const delta of deltas) send(chunk('m', delta))
      for (const content of before) send(chunk('m', { content }))
      if (after !== undefined) await proceed.promise
      if (breaks) {
        response.destroy()
        return
      }
      for (const content of after ?? []) send(chunk('m', { content }))
      send(chunk('m', {}, 'stop'))
      response.end('data: [DONE]\n\n')
    })
  }),
)
const presidio = useFixture(() => startGuardVendor('presidio'))
const judge = useFixture(() => startGuardVendor('judge'))
const moderation = useFixture(() => startGuardVendor('moderation'))
const hook = useFixture(startWebhook)

const [port, stats] = [await freePort(), await freePort()]
const byJudge = { judge: { backendRef: toBackend('judge'), model: 'judge-1' } }
useGateway(() => {
  const guarded = (name: string, response: object[]) => [
    aiBackend(
      name,
      {
        provider: {
          custom: { formats: [{ type: 'Completions' }] },
          host: '127.0.0.1',
          port: vendor.port,
        },
      },
      { ai: { promptGuard: { response } } },
    ),
    routeByPath(name),
  ]
  return {
    manifests: [
      gateway(port),
      staticBackend('presidio', presidio.port),
      staticBackend('judge', judge.port),
      staticBackend('moderation', moderation.port),
      staticBackend('hook', hook.port),
      ...guarded('windows', [
        { presidio: { backendRef: toBackend('presidio') } },
        byJudge,
        { moderation: { backendRef: toBackend('moderation') } },
      ]),
      ...guarded('open', [{ judge: { ...byJudge.judge, failureMode: 'FailOpen' } }]),
      ...guarded('audited', [{ judge: { ...byJudge.judge, action: 'Audit' } }]),
      ...guarded('whole', [{ judge: { ...byJudge.judge, streams: 'Whole' } }]),
      aiBackend(
        'several',
        {
          groups: ['one', 'two'].map((name) => ({
            providers: [
              {
                name,
                custom: { formats: [{ type: 'Completions' }] },
                host: '127.0.0.1',
                port: vendor.port,
              },
            ],
          })),
        },
        { ai: { promptGuard: { response: [byJudge] } } },
      ),
      routeByPath('several'),
      ...guarded('after-patterns', [{ regex: { builtins: ['Email'] } }, byJudge]),
      ...guarded('before-patterns', [byJudge, { regex: { builtins: ['Email'] } }]),
      ...guarded('between-patterns', [
        { regex: { matches: ['now'] } },
        byJudge,
        { regex: { builtins: ['Email', 'CreditCard'] } },
        { regex: { matches: ['last'], action: 'Audit' } },
      ]),
      ...guarded('patterns', [{ regex: { builtins: ['Email'] } }]),
      ...guarded('before-anchored', [
        byJudge,
        { regex: { matches: ['^(mple|plem|lemp|empl)', '(mple|plem|lemp|empl)$'] } },
      ]),
      ...guarded('before-long-patterns', [byJudge, { regex: { builtins: ['PrivateKey'] } }]),
      ...guarded('hooked', [{ webhook: { backendRef: toBackend('hook') } }]),
      ...guarded('hooked-whole', [
        { webhook: { backendRef: toBackend('hook'), streams: 'Whole' } },
      ]),
    ],
    args: ['--stats-address', `127.0.0.1:${stats}`],
  }
})

beforeEach(() => {
  proceed = Promise.withResolvers()
  aborted = Promise.withResolvers()
  for (const one of [presidio, judge, moderation, hook]) one.next.length = 0
  hook.answer = masks((text) => text.replace(mails, '<EMAIL_ADDRESS>'))
})

const messages = [{ role: 'user', content: 'x' }]
const clients = {
  Completions: { path: '/v1/chat/completions', body: { model: 'm', stream: true, messages } },
  Messages: { path: '/v1/messages', body: { model: 'm', stream: true, max_tokens: 9, messages } },
  Responses: { path: '/v1/responses', body: { model: 'm', stream: true, input: 'x' } },
  'Gemini as events': {
    path: '/v1beta/models/m:streamGenerateContent?alt=sse',
    body: { contents: [{ role: 'user', parts: [{ text: 'x' }] }] },
  },
  'Gemini as an array': {
    path: '/v1beta/models/m:streamGenerateContent',
    body: { contents: [{ role: 'user', parts: [{ text: 'x' }] }] },
  },
  Converse: {
    path: '/model/m/converse-stream',
    body: { messages: [{ role: 'user', content: [{ text: 'x' }] }] },
  },
}
type Client = keyof typeof clients
const names = Object.keys(clients) as Client[]

/** Reads an answer. The vendor continues once the client has the first words. */
async function ask(backend: string, client: Client, sent: Script) {
  script = sent
  const { path, body } = clients[client]
  const answer = await fetch(`http://127.0.0.1:${port}/${backend}${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  let text = ''
  for await (const bytes of answer.body ?? []) {
    text += Buffer.from(bytes).toString('latin1')
    if (text.includes('first words')) proceed.resolve()
  }
  return { status: answer.status, text }
}

const filler = Array.from({ length: 90 }, (_, at) => `lorem ipsum dolor sit amet ${at} `)
const before = ['first words ', ...filler]
const refusal = 'The response was rejected due to inappropriate content'

describe.each(names)('a stream for a client of %s', (client) => {
  it('passes while later text waits, and is masked across windows', async () => {
    const after = ['write to bob@exa', 'mple.com', ' now ', ...filler, 'last words']
    const { status, text } = await ask('windows', client, { before, after })
    expect(status).toBe(200)
    expect(text).toContain('<EMAIL_ADDRESS>')
    expect(text).not.toContain('bob@')
    expect(text).not.toContain('mple.com')
    expect(text).toContain('last words')
  })

  it.each(['before-patterns', 'after-patterns', 'between-patterns', 'patterns', 'hooked'])(
    'is masked in windows with the guards of %s',
    async (backend) => {
      const after = ['write to bob@exa', 'mple.com', ' now ', ...filler, 'last words']
      const { status, text } = await ask(backend, client, { before, after })
      expect(status).toBe(200)
      expect(text).not.toMatch(/bob|mple\.com/)
      expect(text).toContain('<EMAIL_ADDRESS>')
      expect(text.includes('<masked>')).toBe(backend === 'between-patterns')
      expect(text).toMatch(/ words/)
      expect(text).not.toContain('cut off')
    },
  )

  it('ends with an error of its format if a webhook refuses or fails in a later window', async () => {
    hook.next.push(
      acts({ reason: 'fine' }),
      acts({ body: 'not here', status_code: 451 }),
      acts({ reason: 'fine' }),
      (_, response) => json(response, 200, { action: { unknown: 1 } }),
    )
    const after = [...filler, ...filler, 'last words']
    for (const message of ['not here', 'prompt guard failed']) {
      proceed = Promise.withResolvers()
      const { status, text } = await ask('hooked', client, { before, after })
      expect(status).toBe(200)
      expect(text).toContain(message)
      expect(text).not.toContain('last words')
    }
  })

  it('ends with an error of its format if a guard refuses a later window, and the provider stops', async () => {
    const after = ['a forb', 'idden word', ...filler, 'last words']
    const { status, text } = await ask('windows', client, { before, after })
    expect(status).toBe(200)
    expect(text).toContain(refusal)
    for (const hidden of ['forb', 'idden', 'last words']) expect(text).not.toContain(hidden)
  })

  it('ends with an error if the provider disconnects in a later window', async () => {
    const sent = { before, after: [], breaks: true }
    const { text } = await ask('windows', client, sent)
    expect(text).toContain('the response of the provider was cut off')
  })
})

describe('a stream that a service checks in windows', () => {
  it('is refused with its own status if the first window is refused', async () => {
    const sent = { before: ['a forbidden word ', ...filler] }
    expect(await ask('windows', 'Completions', sent)).toEqual({ status: 403, text: refusal })
  })

  it('is cancelled at the provider when a later window is refused', async () => {
    const endless = [...before, 'forbidden ', ...filler]
    script = { before: endless, after: [] }
    const { path, body } = clients.Completions
    const answer = await fetch(`http://127.0.0.1:${port}/windows${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
    expect(await answer.text()).toContain(refusal)
    await aborted.promise
  })

  it('fails with an error event, or passes with FailOpen, if the service fails in a later window', async () => {
    const after = [...filler, 'last words']
    const fails = () => {
      judge.next.push(judge.answer)
      for (let at = 0; at < 20; at++) judge.next.push((_, response) => json(response, 500, {}))
    }
    fails()
    const closed = await ask('after-patterns', 'Completions', { before, after })
    expect(closed.text).toContain('prompt guard failed')
    expect(closed.text).not.toContain('last words')
    judge.next.length = 0
    proceed = Promise.withResolvers()
    fails()
    const open = await ask('open', 'Completions', { before, after })
    expect(open.text).toContain('last words')
    const metrics = await (await fetch(`http://127.0.0.1:${stats}/metrics`)).text()
    expect(metrics).toMatch(
      /guardrail_rule_checks_total\{policy="GatewayBackend default\/open",.*action="FailOpen"\} 1/,
    )
  })

  it('is checked at once by services that change nothing, and has one result of each guard', async () => {
    const seen = moderation.calls.length
    judge.next.push(async (call, response) => {
      await expect.poll(() => moderation.calls.length).toBeGreaterThan(seen)
      judge.answer(call, response)
    })
    const metrics = async () => (await fetch(`http://127.0.0.1:${stats}/metrics`)).text()
    const line =
      'policy="GatewayBackend default/windows",phase="Response",rule="1",guard="judge",action="Allow"} '
    const count = (text: string) => Number(text.split(line)[1]?.split('\n')[0] ?? 0)
    const earlier = count(await metrics())
    const answer = await ask('windows', 'Completions', { before, after: filler })
    expect(answer.status).toBe(200)
    expect(answer.text).not.toContain('error')
    await expect.poll(async () => count(await metrics())).toBe(earlier + 1)
  })

  it.each(['Completions', 'Gemini as an array', 'Converse'] as const)(
    'passes before it has been judged if guards only report (%s)',
    async (client) => {
      const asked = judge.calls.length
      const after = ['a forb', 'idden word', ...filler, 'last words']
      const { status, text } = await ask('audited', client, { before: ['first words '], after })
      expect(status).toBe(200)
      for (const words of ['forb', 'idden word', 'last words']) expect(text).toContain(words)
      expect(judge.calls.length).toBeGreaterThan(asked)
      const metrics = await (await fetch(`http://127.0.0.1:${stats}/metrics`)).text()
      expect(metrics).toMatch(/policy="GatewayBackend default\/audited",.*action="Audit"\} \d/)
      // There is no second result of the guard.
      expect(metrics).not.toMatch(/policy="GatewayBackend default\/audited",.*action="Allow"/)
    },
  )

  it('passes if it has only calls of tools, or a long reasoning before the text', async () => {
    const call = { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const calls = { before: [], deltas: [{ tool_calls: [call] }] }
    const { text } = await ask('windows', 'Completions', calls)
    expect(text).toContain('"arguments":"{}"')
    const thoughts = Array.from({ length: 1_200 }, (_, at) => ({
      reasoning_content: at === 0 ? 'first words' : 'so ',
    }))
    const thinking = { before: [], deltas: thoughts, after: ['all is well'] }
    expect((await ask('windows', 'Completions', thinking)).text).toContain('all is well')
  })

  it('passes if its beginning was read to choose another provider', async () => {
    const { status, text } = await ask('several', 'Completions', { before, after: ['last words'] })
    expect([status, text.includes('last words')]).toEqual([200, true])
  })

  it('is masked by patterns before services check it', async () => {
    judge.calls.length = 0
    const after = ['write to bob@exa', 'mple.com', ...filler, 'last words']
    const { text } = await ask('after-patterns', 'Completions', { before, after })
    expect(text).toContain('words"')
    expect(text).toContain('<EMAIL_ADDRESS>')
    expect(text).not.toMatch(/bob@|mple\.com/)
    expect(judge.calls.some(({ text }) => text.includes('EMAIL_ADDRESS'))).toBe(true)
    expect(judge.calls.some(({ text }) => text.includes('bob@'))).toBe(false)
  })

  it('is held as a whole if a pattern after a service has longer matches than windows overlap', async () => {
    const key = `-----BEGIN PRIVATE KEY-----\n${'MIIEvQIBADANBgkqhkiG9w0B\n'.repeat(40)}-----END PRIVATE KEY-----`
    const pieces = key.match(/.{1,50}/gs) ?? []
    const sent = { before: [...before, ...pieces, ' ', ...filler] }
    const { text } = await ask('before-long-patterns', 'Completions', sent)
    expect(text).toContain('<PRIVATE_KEY>')
    expect(text).not.toContain('MIIE')
  })

  it('has no beginnings and ends for patterns at the edges of windows', async () => {
    const { text } = await ask('before-anchored', 'Completions', {
      before: [...before, ...Array<string>(60).fill('mple'.repeat(10)), 'last words'],
    })
    expect(text).toContain('last words')
    expect(text).not.toContain('masked')
  })

  it('[Webhook.streams=Whole] is sent to a webhook in windows, or as a whole if configured', async () => {
    const lengthsOf = async (backend: string, sent: Script) => {
      hook.calls.length = 0
      await ask(backend, 'Completions', sent)
      return hook.calls.map((call) => shown(call).reduce((sum, one) => sum + one.content.length, 0))
    }
    const total = [...before, ...filler].join('').length
    const windows = await lengthsOf('hooked', { before, after: filler })
    expect(Math.max(...windows)).toBeLessThan(total)
    expect(await lengthsOf('hooked-whole', { before: [...before, ...filler] })).toEqual([total])
  })

  it('[JudgeModel.streams=Whole] is held as a whole if configured', async () => {
    const sent = { before: [...before, ...filler, 'forbidden'] }
    expect(await ask('whole', 'Completions', sent)).toEqual({ status: 403, text: refusal })
  })
})
