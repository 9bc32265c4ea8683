import { describe, expect, it } from 'vitest'
import { sluice } from '../support/gateway.ts'
import { failsA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'
import { a, ask, collect, collected, metrics, openai, stats } from './model-telemetry-rig.ts'

/** The number of the series of a metric that has these labels. */
async function figure(name: string, ...labels: readonly string[]): Promise<number | undefined> {
  const line = (await metrics())
    .split('\n')
    .find((one) => one.startsWith(`${name}{`) && labels.every((label) => one.includes(label)))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}

describe('spans of model requests', () => {
  it('are named and described by the conventions for generative AI', async () => {
    await openai('a').chat.completions.create({ ...ask, model: 'spanned', seed: 7 })
    const isIt = (kind: number) => () =>
      collected.spans.find(
        ({ span, attributes }) =>
          span.kind === kind && attributes['gen_ai.request.model'] === 'spanned',
      )
    const client = await waitFor('the span of the call', isIt(3))
    expect(client.span.name).toBe('chat spanned')
    expect(client.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'server.address': '127.0.0.1',
    })
    const server = await waitFor('the span of the request', isIt(2))
    expect(server.attributes).toMatchObject({
      protocol: 'llm',
      'gen_ai.response.model': 'spanned',
      'gen_ai.usage.input_tokens': 11n,
      'gen_ai.usage.output_tokens': 7n,
      'gen_ai.request.seed': 7n,
    })
  })
})

describe('metrics of model requests', () => {
  const named = (model: string) => [
    'gen_ai_operation_name="chat"',
    'gen_ai_provider_name="openai"',
    `gen_ai_request_model="${model}"`,
    `gen_ai_response_model="${model}"`,
    'gateway="default/edge"',
    'route="default/a"',
  ]

  it('count tokens and time operations', async () => {
    await openai('a').chat.completions.create({ ...ask, model: 'counted' })
    await collect(
      await openai('a').chat.completions.create({ ...ask, model: 'counted', stream: true }),
    )
    const labels = named('counted')
    const usage = 'sluice_gen_ai_client_token_usage'
    await waitFor('both requests', async () => (await figure(`${usage}_count`, ...labels)) === 2)
    expect(await figure(`${usage}_sum`, 'gen_ai_token_type="input"', ...labels)).toBe(22)
    expect(await figure(`${usage}_sum`, 'gen_ai_token_type="output"', ...labels)).toBe(14)
    for (const name of ['gen_ai_client_operation_duration', 'gen_ai_server_request_duration']) {
      expect(await figure(`sluice_${name}_count`, 'error_type=""', ...labels)).toBe(2)
    }
    for (const name of ['time_to_first_token', 'time_per_output_token']) {
      expect(await figure(`sluice_gen_ai_server_${name}_count`, ...labels)).toBe(1)
    }
  })

  it('have no labels made of names that clients choose', async () => {
    for (const count of [1, 2, 3]) {
      a.next.push(failsA(404, 'no such model'))
      const asked = openai('a').chat.completions.create({ ...ask, model: `invented-${count}` })
      await expect(asked).rejects.toThrow('no such model')
    }
    const name = 'sluice_gen_ai_server_request_duration_count'
    const labels = ['error_type="404"', 'gen_ai_request_model="_OTHER"']
    await waitFor('the failures', async () => (await figure(name, ...labels)) === 3)
    expect(await metrics()).not.toContain('invented')
  })

  it('count decisions of guards', async () => {
    const name = 'sluice_guardrail_checks_total'
    const request = ['phase="Request"', 'guard="regex"']
    const before = (await figure(name, ...request, 'action="Mask"')) ?? 0
    await openai('masked').chat.completions.create({
      ...ask,
      messages: [{ role: 'user', content: 'secret' }],
    })
    await waitFor(
      'the mask',
      async () => (await figure(name, ...request, 'action="Mask"')) === before + 1,
    )
    expect(
      await figure(name, 'phase="Response"', 'guard="regex"', 'action="Allow"'),
    ).toBeGreaterThan(0)
  })

  it('show which provider is ejected, and why', async () => {
    a.next.push(failsA(429, 'slow down', { 'retry-after': '3600' }))
    await openai('pair').chat.completions.create(ask)
    const labels = ['backend="default/pair"', 'provider="one"', 'reason="status 429"']
    await waitFor('the ejection', async () => {
      return (await figure('sluice_model_provider_ejections_total', ...labels)) === 1
    })
    expect(await figure('sluice_model_provider_ejected', ...labels)).toBe(1)
    const told = await sluice('explain', 'providers', 'default/pair', '--stats', stats)
    expect(told.code, told.stderr).toBe(0)
    expect(told.stdout).toMatch(/default\/pair +one +left out by 1 worker +status 429/)
    const json = await sluice('explain', 'providers', '--stats', stats, '-o', 'json')
    expect(JSON.parse(json.stdout)).toEqual({
      providers: [
        {
          proxy: stats,
          backend: 'default/pair',
          provider: 'one',
          reason: 'status 429',
          workers: 1,
          times: 1,
        },
      ],
      problems: [],
    })
  })
})
