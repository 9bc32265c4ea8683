import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { answerAs } from './model-upstream.ts'
import { outline, runImport, useImport } from './rig.ts'

const port = await freePort()
const first = useUpstream('first', answerAs('first'))
const second = useUpstream('second', answerAs('second'))
const busy = useUpstream('busy', (_, response) => {
  response.statusCode = 429
  response.end('{"error":{"message":"busy"}}')
})

const config = () => `model_list:
  - model_name: smart
    litellm_params:
      model: openai/gpt-4o
      api_base: http://127.0.0.1:${first.port}/v1
      api_key: sk-inline-secret
      temperature: 0.5
  - model_name: fast
    litellm_params:
      model: openai/gpt-4o-mini
      api_base: http://127.0.0.1:${busy.port}/v1
      api_key: os.environ/FAST_KEY
  - model_name: backup
    litellm_params:
      model: openai/gpt-4o-backup
      api_base: http://127.0.0.1:${second.port}
      api_key: os.environ/DEFINED_KEY
environment_variables:
  DEFINED_KEY: sk-defined
router_settings:
  model_group_alias: { clever: smart }
  fallbacks: [{ fast: [backup] }]
litellm_settings:
  request_timeout: 30
guardrails:
  - guardrail_name: pii
    litellm_params:
      guardrail: presidio
      mode: pre_call
      default_on: true
      pii_entities_config: { EMAIL_ADDRESS: MASK }
general_settings:
  master_key: sk-master
`

describe('sluice import of a LiteLLM configuration', () => {
  const { gateway, imported } = useImport(() => ({
    content: config(),
    args: ['--port', `${port}`],
  }))
  const chat = (model: string, content = 'hello', key = 'sk-master') =>
    gateway.send(port, {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
    })

  it('is detected, loses no protection, and is valid', () => {
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    expect(outline(imported())).toEqual([
      'secret: general_settings.master_key',
      'secret: model_list[0].litellm_params.api_key',
      'secret: model_list[1].litellm_params.api_key',
      'secret: model_list[2].litellm_params.api_key',
    ])
  })

  it('never repeats a secret in the report', () => {
    const { findings, stderr, stdout, manifests } = imported()
    const told = JSON.stringify(findings) + stderr + stdout
    expect(told).not.toMatch(/sk-(inline|defined|master)/)
    expect(manifests['secrets.yaml']).toContain('sk-inline-secret')
  })

  it('refuses clients without the master key', async () => {
    expect((await chat('smart', 'hello', 'wrong')).status).toBe(401)
  })

  it('sends each model name to its deployment, with its model, key and parameters', async () => {
    expect((await chat('smart')).body).toContain('from first')
    const received = first.received.at(-1)
    expect(JSON.parse(received?.body ?? '')).toMatchObject({ model: 'gpt-4o', temperature: 0.5 })
    expect(received?.headers.authorization).toBe('Bearer sk-inline-secret')
    expect((await chat('clever')).body).toContain('from first')
    expect((await chat('unknown')).status).toBe(404)
  })

  it('asks the fallback model if the first one is busy', async () => {
    // The request that meets the limit is answered with it; the provider is left out afterwards.
    await chat('fast')
    const answer = await chat('fast')
    expect(answer.body).toContain('from second')
    expect(second.received.at(-1)?.headers.authorization).toBe('Bearer sk-defined')
  })

  it('masks what the guardrail masks', async () => {
    await chat('smart', 'I am ann@example.com')
    expect(first.received.at(-1)?.body).toContain('<EMAIL_ADDRESS>')
  })
})

describe('a budget of LiteLLM', () => {
  const withBudget = (duration: string) =>
    runImport(`model_list:
  - model_name: "*"
    litellm_params: { model: "openai/*", api_key: os.environ/KEY }
litellm_settings: { max_budget: 100.5, budget_duration: ${duration} }
`)

  it.each([
    ['30d', 'Month'],
    ['1mo', 'Month'],
    ['7d', 'Week'],
    ['24h', 'Day'],
    ['1h', 'Hour'],
  ])('that is renewed after %s becomes a GatewayBudget per %s', async (duration, unit) => {
    const { code, manifests, validation } = await withBudget(duration)
    expect([code, validation?.code]).toEqual([0, 0])
    const documents = parseAllDocuments(manifests['policies.yaml'] ?? '')
    const budget = documents.map((one) => one.toJS()).find(({ kind }) => kind === 'GatewayBudget')
    expect(budget.spec).toMatchObject({
      limit: { unit: 'USD', amount: '100.5' },
      window: { type: 'Calendar', unit },
      unpriced: 'CountAs',
      unpricedAmount: '0',
    })
  })

  it('of teams count the keys of the team; their other limits are lost protections', async () => {
    const teams = `general_settings: { master_key: sk-1 }
model_list: [{ model_name: m, litellm_params: { model: openai/gpt-4o, api_key: os.environ/K } }]
litellm_settings:
  default_team_params: { max_budget: 5, budget_duration: 1d }
  default_team_settings: [{ team_id: red, max_budget: 10, budget_duration: 30d }]
default_settings_of_a_later_version: { soft: { budget_of_team: 3 } }
`
    const refused = await runImport(teams)
    expect(refused.code).toBe(3)
    expect(outline(refused)).toContain('protection: default_settings_of_a_later_version')
    const { manifests, code } = await runImport(teams.replace('budget_of_team', 'amount'))
    expect(code).toBe(0)
    const documents = parseAllDocuments(manifests['policies.yaml'] ?? '').map((one) => one.toJS())
    const budgets = documents.filter(({ kind }) => kind === 'GatewayBudget')
    expect(budgets.map(({ metadata, spec }) => [metadata.name, spec.each, spec.when])).toEqual([
      ['teams', 'apiKey.team', 'has(apiKey.team)'],
      ['team-red', undefined, 'has(apiKey.team) && apiKey.team == "red"'],
    ])
    const limited = await runImport(teams.replace('30d', '30d, rpm_limit: 5, models: [m]'))
    expect(outline(limited)).toEqual(
      expect.arrayContaining([
        'protection: litellm_settings.default_team_settings[0].models',
        'protection: litellm_settings.default_team_settings[0].rpm_limit',
      ]),
    )
  })

  it('with another period is a lost protection', async () => {
    const { code, findings } = await withBudget('36h')
    expect(code).toBe(3)
    expect(findings.find(({ kind }) => kind === 'protection')).toMatchObject({
      field: 'litellm_settings.max_budget',
      reason: expect.stringContaining('is renewed after 36h'),
    })
  })
})

describe('what LiteLLM has and Sluice lacks', () => {
  it('is reported with its line; budgets that never end and unknown guardrails are protections', async () => {
    const result = await runImport(`model_list:
  - model_name: "*"
    litellm_params: { model: "openai/*", api_key: os.environ/KEY, rpm: 5 }
litellm_settings:
  max_budget: 100
  cache: true
guardrails:
  - guardrail_name: custom
    litellm_params: { guardrail: aporia, mode: pre_call }
`)
    expect(result).toMatchObject({ code: 3, manifests: {} })
    expect(outline(result)).toEqual([
      'changed: model_list[0].litellm_params.rpm',
      'lost: litellm_settings.cache',
      'protection: guardrails[0]',
      'protection: litellm_settings.max_budget',
      'secret: model_list[0].litellm_params.api_key',
    ])
    expect(result.findings.find(({ field }) => field.endsWith('cache'))).toMatchObject({ line: 6 })
  })
})
