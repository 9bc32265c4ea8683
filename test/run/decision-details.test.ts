import { beforeAll, describe, expect, it } from 'vitest'
import type { RecordedDecision } from '../../src/past/decisions/record.ts'
import { recordsIn } from '../support/decision-records.ts'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import { startExtProcServer } from '../support/ext-proc-server.ts'
import { useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import {
  aiBackend,
  gateway,
  hostOf,
  inferencePool,
  mcpBackend,
  pod,
  policy,
  routeByHost,
  secret,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { startRateLimitServer } from '../support/rate-limit-server.ts'
import { acts, startWebhook } from '../support/vendors/guard-services.ts'
import { completes, failsA, startVendorA } from '../support/vendors/vendor-a.ts'
import { authorization, cases, prompt, rpc, rule } from './decision-details-rig.ts'

const upstream = useUpstream()
const denying = useUpstream('denying', (_, response) => response.writeHead(401).end('no'))
const failing = useFixture(startVendorA)
const model = useFixture(startVendorA)
const extAuthServer = useFixture(startExtAuthServer)
const limits = useFixture(startRateLimitServer)
const hook = useFixture(startWebhook)
const processor = useFixture(() =>
  startExtProcServer((_, stream) => {
    stream.send({ response: { case: 'immediateResponse', value: { status: { code: 410 } } } })
  }),
)
const items = useFixture(() => startMcpItemsServer({ tools: ['search', 'delete'] }))
const folder = useFolder('sluice-decisions-')
const port = await freePort()
const nobody = await freePort()
const running = useGateway(() => {
  const at = ({ port }: { readonly port: number }) => ({ host: '127.0.0.1', port })
  const promptGuard = {
    request: [
      { regex: { builtins: ['Email'], matches: ['secret-\\d+'] } },
      { regex: { matches: ['forbidden'], action: 'Reject' } },
    ],
    response: [{ regex: { builtins: ['Email'] } }],
  }
  const groups = [failing, model].map((vendor, index) => ({
    providers: [{ name: `provider-${index}`, vendorA: {}, ...at(vendor) }],
  }))
  const targets = [{ name: 'items', static: at(items) }]
  return {
    manifests: [
      gateway(port),
      staticBackend('ext-auth', extAuthServer.port),
      staticBackend('limits', limits.port),
      staticBackend('processor', processor.port),
      staticBackend('hook', hook.port),
      aiBackend('limited', { provider: { vendorA: {}, ...at(model) } }),
      aiBackend(
        'hooked',
        { provider: { vendorA: {}, ...at(model) } },
        { ai: { promptGuard: { request: [{ webhook: { backendRef: toBackend('hook') } }] } } },
      ),
      mcpBackend('sessions', targets),
      mcpBackend('secured', targets),
      mcpBackend('dead', [{ name: 'dead', static: { host: '127.0.0.1', port: nobody } }], {
        sessionRouting: 'Stateless',
      }),
      policy('secured', 'GatewayBackend/secured', {
        backend: {
          mcp: {
            authentication: {
              issuer: 'https://idp',
              jwks: { jwksPath: '/keys', backendRef: toBackend('nobody') },
            },
          },
        },
      }),
      ...service('picker', [nobody], { appProtocol: 'kubernetes.io/h2c' }),
      inferencePool('pool', 'model', [upstream.port], { name: 'picker', failureMode: 'FailOpen' }),
      pod('model-0', 'model', '127.0.0.1'),
      staticBackend('main', upstream.port),
      staticBackend('denying', denying.port),
      staticBackend('nobody', nobody),
      secret('keys', { one: 'k-1' }),
      ...Object.entries(cases).flatMap(([name, { policies = [], backend = toBackend('main') }]) => [
        routeByHost(name, backend),
        ...policies.map((traffic, index) => {
          return policy(`${name}-${index}`, `HTTPRoute/${name}`, { traffic })
        }),
      ]),
      aiBackend('guarded', { provider: { vendorA: {}, ...at(model) } }, { ai: { promptGuard } }),
      routeByHost('guarded', toBackend('guarded')),
      aiBackend('failover', { groups }),
      routeByHost('failover', toBackend('failover')),
      mcpBackend('tools', targets, { sessionRouting: 'Stateless' }),
      routeByHost('tools', toBackend('tools')),
      policy('tools', 'GatewayBackend/tools', {
        backend: { mcp: rule('Deny', 'mcp.tool.name == "delete"') },
      }),
    ],
    args: ['--record', 'all', '--record-dir', folder],
  }
})

let records: ReadonlyMap<string, RecordedDecision>

/** Sends a request whose record has this id. */
async function ask(id: string, name: string, request: TestRequest) {
  const headers = { ...request.headers, 'x-request-id': id }
  const answer = await running.send(port, { ...request, host: hostOf(name), headers })
  expect(answer.headers['x-request-id']).toBe(id)
  return answer
}

beforeAll(async () => {
  model.answer = completes('Write to bob@example.com')
  hook.answer = acts({ status_code: 422, body: 'no', reason: 'it is bad' })
  extAuthServer.answer({
    status: { code: 7 },
    httpResponse: { case: 'deniedResponse', value: { status: { code: 418 }, body: 'no' } },
  })
  const status = { currentLimit: { requestsPerUnit: 7 }, durationUntilReset: { seconds: 30n } }
  limits.answer({ overallCode: 2, statuses: [status] })
  failing.answer = failsA(503, 'busy')
  for (const [name, { requests = [{}], status, step }] of Object.entries(cases)) {
    let answer: Awaited<ReturnType<typeof ask>> | undefined
    for (const request of requests) answer = await ask(name, name, request)
    expect([name, answer?.status]).toEqual([name, status])
    if (step === authorization.step) expect(answer?.body).toBe('authorization failed')
  }
  const mails = 'Mail ann@example.com and eve@example.com about secret-12'
  expect((await ask('masked', 'guarded', prompt(mails))).status).toBe(200)
  expect((await ask('streamed', 'guarded', prompt('Hello', true))).status).toBe(200)
  await ask('rejected', 'guarded', prompt('a forbidden word'))
  expect((await ask('failover', 'failover', prompt('Hello'))).status).toBe(200)
  await ask('tool', 'tools', rpc('tools/call', { name: 'delete', arguments: {} }))
  await ask('list', 'tools', rpc('tools/list', {}))
  await running.stop()
  records = recordsIn(folder)
}, 60_000)

describe('the record of a decision', () => {
  it.each(Object.entries(cases))('explains %s', (name, { status, step, detail, notes = [] }) => {
    const record = records.get(name)
    const answering = record?.steps.find(({ verdict }) => verdict === 'answer')
    expect(record?.response.status).toBe(status)
    expect(answering?.step).toBe(step)
    if (detail instanceof RegExp) expect(record?.response.detail).toMatch(detail)
    else expect(record?.response.detail).toBe(detail)
    expect(record?.steps.flatMap((one) => one.notes)).toEqual(notes)
  })

  it('counts the matches of guards that mask, and names their policy', () => {
    expect(records.get('masked')?.steps).toMatchObject([
      {
        step: 'backend.ai',
        from: [{ object: 'GatewayBackend default/guarded' }],
        verdict: 'pass',
        notes: [
          'request guard 0 (regex): Mask, 2 matches of builtin Email, 1 match of pattern 0',
          'response guard 0 (regex): Mask, 1 match of builtin Email',
        ],
      },
    ])
  })

  it('counts the matches in a streamed answer', () => {
    const [step] = records.get('streamed')?.steps ?? []
    expect(step?.notes).toEqual(['response guard 0 (regex): Mask, 1 match of builtin Email'])
  })

  it('names the guard that rejects', () => {
    const { steps, response } = records.get('rejected') ?? {}
    const detail = 'request guard 1 (regex): Reject, 1 match of pattern 0'
    expect(response).toMatchObject({ status: 403, reason: 'Guardrail', detail })
    expect(steps).toMatchObject([{ step: 'backend.ai', verdict: 'answer', notes: [detail] }])
  })

  it('lists the failed attempt of a failover', () => {
    const endpoint = `127.0.0.1:${failing.port}`
    expect(records.get('failover')).toMatchObject({
      attempts: [{ endpoint, failure: 'status 503', provider: expect.any(String), group: 1 }],
      details: {
        'model.provider': expect.any(String),
        'model.failed': expect.stringContaining(': status 503'),
      },
      route: { endpoint: `127.0.0.1:${model.port}` },
    })
  })

  it('names the MCP rule that refuses a tool', () => {
    const rule = 'Deny rule 0 matched: mcp.tool.name == "delete"'
    const from = [{ object: 'GatewayPolicy default/tools' }]
    expect(records.get('tool')).toMatchObject({
      steps: [
        {
          step: 'backend.mcp',
          from,
          verdict: 'answer',
          notes: [`tools/call of tool delete of target items: ${rule}`],
        },
      ],
      details: { 'mcp.target': 'items', 'gen_ai.tool.name': 'delete' },
    })
    expect(records.get('list')?.steps).toMatchObject([
      {
        step: 'backend.mcp',
        from,
        verdict: 'pass',
        notes: [`tools/list hides items, such as tool delete of target items: ${rule}`],
      },
    ])
  })
})
