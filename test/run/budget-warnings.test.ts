/** Soft limits of budgets: every way in which they warn, once, also over restarts; and metrics and records of budgets. */
import { describe, expect, it } from 'vitest'
import type { Authority } from '../support/certificates.ts'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  budget,
  configMap,
  gateway,
  hostOf,
  httpRoute,
  manifest,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startTlsUpstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream()
let calls = 0
const pager = useUpstream('pager', (_, response) => {
  response.statusCode = ++calls === 1 ? 503 : 200
  response.end('noted')
})
const authority = useAuthority()
const stranger = useAuthority()
const sealed = useFixture(() => startTlsUpstream({ tls: authority.issue(['localhost']) }))
const trusted = ({ certificate }: Authority) => configMap('ca', { 'ca.crt': certificate })
const [port, stats] = [await freePort(), await freePort()]
const header = 'X-Budget-Warning'
const pagerRef = { group: 'sluice.dev', kind: 'GatewayBackend', name: 'pager' }
const running = useGateway(() => ({
  manifests: {
    'ca.yaml': manifest(trusted(stranger)),
    'all.yaml': manifest(
      gateway(port),
      staticBackend('main', upstream.port),
      staticBackend('pager', pager.port),
      ...['warned', 'lost', 'sealed'].map((name) =>
        httpRoute(name, {
          hostnames: [hostOf(name)],
          rules: [{ backendRefs: [toBackend('main')] }],
        }),
      ),
      budget('warned', 'HTTPRoute/warned', {
        each: 'request.headers["x-team"]',
        limit: { unit: 'Requests', amount: '10' },
        window: { unit: 'Month' },
        softLimits: [
          {
            percent: 80,
            responseHeader: header,
            webhook: { backendRef: pagerRef, path: '/hooks?of=budgets' },
          },
          { percent: 50, responseHeader: header },
        ],
      }),
      budget('lost', 'HTTPRoute/lost', {
        limit: { unit: 'Requests', amount: '10' },
        window: { unit: 'Month' },
        softLimits: [{ percent: 10, webhook: { backendRef: { ...pagerRef, name: 'nobody' } } }],
      }),
      {
        apiVersion: 'sluice.dev/v1alpha1',
        kind: 'GatewayBackend',
        metadata: { name: 'sealed' },
        spec: {
          static: { host: 'localhost', port: sealed.port },
          policies: { tls: { caCertificateRefs: [{ name: 'ca' }] } },
        },
      },
      budget('sealed', 'HTTPRoute/sealed', {
        limit: { unit: 'Requests', amount: '10' },
        window: { unit: 'Month' },
        softLimits: [
          { percent: 10, webhook: { backendRef: { ...pagerRef, name: 'sealed' }, path: '/hooks' } },
        ],
      }),
    ),
  },
  args: ['--workers', '2', '--stats-address', `127.0.0.1:${stats}`, '--record', 'all'],
}))

const ask = (team: string, name = 'warned') =>
  running.send(port, { host: hostOf(name), headers: { 'x-team': team } })
const askOften = async (team: string, count: number) => {
  for (let at = 0; at < count; at++) expect((await ask(team)).status).toBe(200)
}
const metrics = async () => (await fetch(`http://127.0.0.1:${stats}/metrics`)).text()
const series = (line: string) =>
  waitFor(`the metric ${line}`, async () => (await metrics()).includes(line))
/** Lines of the log about what a team has reached. */
const logged = (team: string) =>
  running.stderr.split('\n').filter((line) => line.includes(`for "${team}" has reached`))
const explain = async (id: unknown) =>
  (await sluice('explain', 'request', '--id', `${id}`, '--log-file', running.logFile)).stdout

describe('soft limits of a budget', () => {
  it('warn in the log, in a header and in a metric once that much is spent', async () => {
    const first = await ask('sales')
    expect(first.headers['x-budget-warning']).toBeUndefined()
    await askOften('sales', 3)
    expect(await metrics()).not.toContain(
      'budget_values_over_soft_limit{budget="default/warned",percent="50"} 1',
    )
    await askOften('sales', 1)
    await series('sluice_budget_values_over_soft_limit{budget="default/warned",percent="50"} 1')
    await waitFor('the line', () => logged('sales').length === 1)
    expect(logged('sales')[0]).toContain(
      'budget default/warned for "sales" has reached 50 %: 5 of 10 Requests of this month are spent',
    )
    expect((await ask('sales')).headers['x-budget-warning']).toBe('"default/warned";percent=50')
    expect((await ask('legal')).headers['x-budget-warning']).toBeUndefined()
  })

  it('call a webhook with a CloudEvent, again after a failure', async () => {
    await askOften('sales', 2)
    await waitFor('the calls', () => pager.received.length === 2)
    const [failed, delivered] = pager.received
    expect(delivered).toMatchObject({ method: 'POST', path: '/hooks?of=budgets' })
    expect(delivered?.headers['content-type']).toContain('application/cloudevents+json')
    expect(delivered?.body).toBe(failed?.body)
    expect(JSON.parse(delivered?.body ?? '')).toEqual({
      specversion: '1.0',
      id: expect.stringMatching(/./),
      source: '/sluice/ledger',
      type: 'dev.sluice.budget.warned.v1',
      subject: 'default/warned',
      time: expect.stringMatching(/^20\d\d-.*Z$/),
      datacontenttype: 'application/json',
      text: 'budget default/warned for "sales" has reached 80 %: 8 of 10 Requests of this month are spent',
      data: {
        budget: 'default/warned',
        value: 'sales',
        percent: 80,
        unit: 'Requests',
        spent: '8',
        limit: '10',
        remaining: '2',
        resetsAt: expect.stringMatching(/^20\d\d-\d\d-01T00:00:00.000Z$/),
      },
    })
    await series('sluice_budget_warnings_total{budget="default/warned",outcome="delivered"} 1')
    expect((await ask('sales')).headers['x-budget-warning']).toBe('"default/warned";percent=80')
  })

  it('set a condition with the values that have reached one', async () => {
    await series('sluice_budget_spent{budget="default/warned",unit="Requests",value="sales"} 9\n')
    const found = await running.condition('GatewayBudget', 'warned', 'SoftLimitReached', 'True')
    expect(found.message).toContain('"sales": 80 % is reached, 9 of 10 Requests are spent')
    expect(found.message).not.toContain('legal')
  })

  it('do not warn again after a restart and after the death of the process', async () => {
    await running.stop()
    await running.start()
    await askOften('legal', 4)
    await waitFor('a warning of another value', () => logged('legal').length === 1)
    expect(logged('sales')).toEqual([])
    // From then on, it is recorded that the warning was passed on.
    await series('sluice_budget_warnings_total{budget="default/warned",outcome="logged"} 1')
    await running.kill()
    await running.start()
    await askOften('third', 5)
    await waitFor('a warning of a third value', () => logged('third').length === 1)
    expect([...logged('sales'), ...logged('legal')]).toEqual([])
    expect(pager.received).toHaveLength(2)
  })

  it('warn again if the amount has grown and that much of it is spent', async () => {
    await ask('sales')
    const { code, stderr } = await sluice(
      ...['budgets', 'adjust', 'warned', '--value', 'sales', '--by', '2', '--reason', 'launch'],
      ...['--log-file', running.logFile],
    )
    expect([code, stderr]).toEqual([0, ''])
    await waitFor('two warnings', () => logged('sales').length === 2)
    expect(logged('sales').join()).toContain('10 of 12 Requests')
    await waitFor('another call', () => pager.received.length === 3)
    expect(await sluice('budgets', 'verify', '--log-file', running.logFile)).toMatchObject({
      code: 0,
    })
  })

  it('call a webhook over TLS only if its certificate is trusted, and report it otherwise', async () => {
    expect((await ask('any', 'sealed')).status).toBe(200)
    const failed = await waitFor(
      'the report',
      () => /the webhook of budget default\/sealed for 10 % failed: .*/.exec(running.stderr)?.[0],
    )
    expect(failed).toMatch(/certificate.*It is called again within two minutes\./)
    expect(sealed.received).toEqual([])
    running.write('ca.yaml', manifest(trusted(authority)))
    await series('sluice_budget_warnings_total{budget="default/sealed",outcome="delivered"} 1')
    expect(sealed.received).toMatchObject([{ method: 'POST', path: '/hooks' }])
  })

  it('report a webhook that does not exist, and still warn', async () => {
    const { reason, message } = await running.condition('GatewayBudget', 'lost', 'Accepted', 'True')
    expect([reason, message]).toEqual([
      'PartiallyValid',
      'spec.softLimits[0].webhook.backendRef: GatewayBackend default/nobody does not exist',
    ])
    expect((await ask('any', 'lost')).status).toBe(200)
    await waitFor('the line', () => running.stderr.includes('budget default/lost has reached 10 %'))
  })
})

describe('metrics and records of budgets', () => {
  it('show what is spent and what is refused', async () => {
    await askOften('sales', 2)
    const refused = await ask('sales')
    expect(refused.status).toBe(429)
    const labels = '{budget="default/warned",unit="Requests",value="sales"}'
    await series(`sluice_budget_spent${labels} 12\n`)
    const text = await metrics()
    expect(text).toContain(`sluice_budget_limit${labels} 12\n`)
    expect(text).toContain(`sluice_budget_remaining${labels} 0\n`)
    expect(text).toContain(`sluice_budget_reserved${labels} 0\n`)
    expect(text).toContain(
      'sluice_budget_refusals_total{budget="default/warned",reason="exhausted"} 1\n',
    )
    expect(await explain(refused.headers['x-request-id'])).toMatch(
      /\nBudgets\n {2}default\/warned +"sales" +exhausted *\n/,
    )
  })

  it('explain what a request has reserved and what it was charged', async () => {
    const { headers } = await ask('fourth')
    const line =
      /\nBudgets\n {2}default\/warned +"fourth" +admitted +reserved 1 requests +charged 1 requests\n/
    await waitFor('the record', async () => line.test(await explain(headers['x-request-id'])))
  })
})
