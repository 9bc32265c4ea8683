import { describe, expect, it } from 'vitest'
import { useUpstream } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import { answerAs } from './model-upstream.ts'
import { outline, runImport, useImport } from './rig.ts'

const ports = await freePorts('conditional', 'fallback', 'balanced')
const first = useUpstream('first', answerAs('first'))
const second = useUpstream('second', answerAs('second'))
const busy = useUpstream('busy', (_, response) => {
  response.statusCode = 429
  response.end('{"error":{"message":"busy"}}')
})

const target = (name: string, { port }: { port: number }, more: object = {}) => ({
  name,
  provider: 'openai',
  api_key: `key-of-${name}`,
  custom_host: `http://127.0.0.1:${port}/v1`,
  ...more,
})

/** Built from entries, because an object with `then` would look like a promise. */
const condition = (query: object, name: string) =>
  Object.fromEntries([
    ['query', query],
    ['then', name],
  ])

const chat = (model = 'gpt-4o') => ({
  method: 'POST',
  path: '/v1/chat/completions',
  body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
})

const served = (port: number, config: () => object) =>
  useImport(() => ({
    content: JSON.stringify(config(), undefined, 2),
    args: ['--port', `${port}`],
  }))

describe('sluice import of a Portkey config with conditions', () => {
  const { gateway, imported } = served(ports.conditional, () => ({
    strategy: {
      mode: 'conditional',
      conditions: [
        condition({ 'metadata.plan': { $eq: 'paid' } }, 'best'),
        condition({ 'params.model': { $in: ['a', 'b'] } }, 'best'),
      ],
      default: 'plain',
    },
    targets: [
      target('best', first, { override_params: { model: 'gpt-4o', temperature: 0.5 } }),
      target('plain', second),
    ],
    request_timeout: 30000,
  }))

  it('is detected, loses no protection, hides keys, and is valid', () => {
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    expect(outline(imported())).toEqual([
      'secret: targets[0].api_key',
      'secret: targets[1].api_key',
    ])
    expect(JSON.stringify(imported().findings) + imported().stderr).not.toContain('key-of')
  })

  it('sends requests to the target of the first condition that matches, or to the default', async () => {
    const send = (model: string, plan?: string) =>
      gateway.send(ports.conditional, {
        ...chat(model),
        headers: plan === undefined ? {} : { 'x-portkey-metadata': JSON.stringify({ plan }) },
      })
    expect((await send('other')).body).toContain('from second')
    expect((await send('other', 'paid')).body).toContain('from first')
    expect((await send('other', 'free')).body).toContain('from second')
    expect((await send('b')).body).toContain('from first')
    const { headers, body } = first.received.at(-1) as (typeof first.received)[number]
    expect(headers.authorization).toBe('Bearer key-of-best')
    expect(JSON.parse(body)).toMatchObject({ model: 'gpt-4o', temperature: 0.5 })
  })
})

describe('sluice import of a Portkey config with fallbacks', () => {
  const { gateway, imported } = served(ports.fallback, () => ({
    strategy: { mode: 'fallback' },
    targets: [target('busy', busy), target('next', second)],
    retry: { attempts: 2, on_status_codes: [429] },
  }))

  it('asks the next target if the first one is busy', async () => {
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    expect((await gateway.send(ports.fallback, chat())).body).toContain('from second')
    expect(busy.received.length).toBeGreaterThan(0)
  })
})

describe('sluice import of a Portkey config with weights', () => {
  const { gateway, imported } = served(ports.balanced, () => ({
    strategy: { mode: 'loadbalance' },
    targets: [target('all', first, { weight: 0.5 }), target('none', second, { weight: 0 })],
  }))

  it('sends requests by weight', async () => {
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    for (let count = 0; count < 5; count++) {
      expect((await gateway.send(ports.balanced, chat())).body).toContain('from first')
    }
  })
})

describe('what Portkey has and Sluice lacks', () => {
  it('is reported with its line; guardrails are protections, and unknown virtual keys are named', async () => {
    const result = await runImport(
      `{
  "cache": { "mode": "semantic" },
  "input_guardrails": ["abc"],
  "strategy": { "mode": "fallback", "on_status_codes": [429] },
  "targets": [{ "virtual_key": "my-key" }, { "virtual_key": "openai-prod", "strange": 1 }]
}`,
    )
    expect(result.code).toBe(3)
    expect(outline(result)).toEqual([
      'changed: strategy.on_status_codes',
      'lost: cache',
      'lost: targets[0]',
      'lost: targets[1].strange',
      'protection: input_guardrails',
      'secret: targets[1].virtual_key',
    ])
    expect(result.findings.find(({ field }) => field === 'cache')).toMatchObject({ line: 2 })
  })
})
