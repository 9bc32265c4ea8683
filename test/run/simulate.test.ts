import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { RecordedDecision } from '../../src/past/decisions/record.ts'
import type { Simulation } from '../../src/past/simulate/index.ts'
import { recordsIn } from '../support/decision-records.ts'
import { useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import {
  aiBackend,
  gateway,
  hostOf,
  mcpBackend,
  policy,
  routeByHost,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'

const upstream = useUpstream()
const denying = useUpstream('denying', (_, response) => response.writeHead(401).end('no'))
const allowing = useUpstream('allowing', (_, response) => response.end())
const model = useFixture(startVendorA)
const items = useFixture(() => startMcpItemsServer({ tools: ['search', 'delete'] }))
const folder = useFolder('sluice-simulate-')
const records = join(folder, 'records')
const port = await freePort()

const extAuth = (name: string) => ({ extAuth: { backendRef: toBackend(name), http: {} } })
const keyed = { apiKeyAuthentication: { secretRef: { name: 'keys' } } }
const forTeam = {
  authorization: { policy: { matchExpressions: ['request.headers["x-team"] == "a"'] } },
}
const policies: Readonly<Record<string, object>> = {
  denied: extAuth('denying'),
  allowed: extAuth('allowing'),
  keyed,
  team: forTeam,
  limited: { rateLimit: { local: [{ requests: 1, unit: 'Hours', burst: 1 }] } },
  direct: { directResponse: { status: 418, body: 'teapot' } },
}

const running = useGateway(() => {
  const at = ({ port: own }: { readonly port: number }) => ({ host: '127.0.0.1', port: own })
  const promptGuard = { request: [{ regex: { matches: ['forbidden'], action: 'Reject' } }] }
  const moved = [{ type: 'RequestRedirect', requestRedirect: { statusCode: 302 } }]
  const both = [toBackend('main', { weight: 1 }), toBackend('other', { weight: 1 })]
  return {
    manifests: [
      gateway(port),
      ...['main', 'other'].map((name) => staticBackend(name, upstream.port)),
      staticBackend('denying', denying.port),
      staticBackend('allowing', allowing.port),
      secret('keys', { one: 'k-1' }),
      ...Object.entries(policies).flatMap(([name, traffic]) => [
        routeByHost(name, toBackend('main')),
        policy(name, `HTTPRoute/${name}`, { traffic }),
      ]),
      routeByHost('plain', toBackend('main')),
      routeByHost('weighted', toBackend('main'), { backendRefs: both }),
      routeByHost('moved', toBackend('main'), { filters: moved, backendRefs: undefined }),
      aiBackend('guarded', { provider: { vendorA: {}, ...at(model) } }, { ai: { promptGuard } }),
      routeByHost('guarded', toBackend('guarded')),
      mcpBackend('tools', [{ name: 'items', static: at(items) }], { sessionRouting: 'Stateless' }),
      routeByHost('tools', toBackend('tools')),
    ],
    args: ['--record', 'all', '--record-dir', records, '--access-log', 'json'],
  }
})

const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const chat = (content: string): TestRequest => ({
  method: 'POST',
  path: '/v1/chat/completions',
  headers: json,
  body: JSON.stringify({ model: 'm-1', messages: [{ role: 'user', content }] }),
})
const rpc = (method: string): TestRequest => ({
  method: 'POST',
  headers: json,
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} }),
})
const withKey = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })

/** Requests by the names of their routes; a name may be followed by a number. */
const requests: readonly (readonly [string, TestRequest?])[] = [
  ['plain'],
  ['plain', { path: '/a?token=secret&x=1', headers: { cookie: 'session=1' } }],
  ['denied'],
  ['allowed'],
  ['keyed'],
  ['keyed', withKey('k-1')],
  ['keyed', withKey('wrong')],
  ['team', { headers: { 'x-team': 'a' } }],
  ['team', { headers: { 'x-team': 'b' } }],
  ['limited'],
  ['limited'],
  ['limited'],
  ['direct'],
  ['moved', { path: '/old' }],
  ...Array.from({ length: 6 }, () => ['weighted'] as const),
  ['guarded', chat('Hello')],
  ['guarded', chat('a forbidden word')],
  ['tools', rpc('tools/list')],
  ['none'],
]

let recorded: ReadonlyMap<string, RecordedDecision>

beforeAll(async () => {
  model.answer = completes('Hello')
  for (const [at, [name, request]] of requests.entries()) {
    const headers = { ...request?.headers, 'x-request-id': `${at}-${name}` }
    await running.send(port, { ...request, host: hostOf(name), headers })
  }
  await running.stop()
  recorded = recordsIn(records)
})

/** Runs `sluice simulate -o json` and reads its lines. */
async function simulate(...args: string[]) {
  const { code, stdout, stderr } = await sluice('simulate', ...args, '-o', 'json')
  const lines = stdout.split('\n').filter((line) => line !== '')
  return { code, stderr, simulations: lines.map((line) => JSON.parse(line) as Simulation) }
}

const curl = (name: string, more = '') => ['--curl', `curl http://${hostOf(name)}/ ${more}`]

describe('sluice simulate', () => {
  it('decides about recorded requests as the gateway did', async () => {
    const log = ['--log-file', running.logFile]
    const { code, simulations, stderr } = await simulate(...log, '--requests', records)
    expect([code, stderr]).toEqual([0, ''])
    expect(simulations).toHaveLength(requests.length)
    for (const { request, outcome, steps } of simulations) {
      const record = recorded.get(request.id ?? '')
      const { status } = record?.response ?? {}
      const { gateway: owner, listener, route, rule, backend } = record?.route ?? {}
      expect([request.id, outcome]).toMatchObject([request.id, { status }])
      expect([request.id, outcome]).toMatchObject([
        request.id,
        JSON.parse(JSON.stringify({ gateway: owner, listener, route, rule, backend })),
      ])
      const isForwarded = record?.route.endpoint !== undefined || request.id?.endsWith('-tools')
      expect([request.id, outcome.verdict]).toEqual([
        request.id,
        isForwarded ? 'forward' : 'answer',
      ])
      const verdicts = (all: readonly { step: string; verdict: string }[] = []) =>
        all
          .filter(({ step }) => step.startsWith('traffic.'))
          .map(({ step, verdict }) => [step, verdict])
      expect(verdicts(steps)).toEqual(verdicts(record?.steps))
    }
  })

  it('computes requests of manifests, and prints each step', async () => {
    const manifests = ['-f', running.manifests]
    const allowed = await simulate(...manifests, ...curl('keyed', `-H 'Authorization: Bearer k-1'`))
    expect(allowed.code).toBe(0)
    expect(allowed.simulations).toMatchObject([
      { steps: [{ verdict: 'pass' }], outcome: { verdict: 'forward', backend: 'default/main' } },
    ])
    const object = { object: 'GatewayPolicy default/keyed', generation: 1 }
    expect(allowed.simulations[0]?.steps).toMatchObject([{ ...object, from: [object] }])
    const { stdout } = await sluice('simulate', ...manifests, ...curl('team', `-H 'x-team: b'`))
    expect(stdout).toContain(
      'traffic.authorization of GatewayPolicy default/team (generation 1): answers 403',
    )
    expect(stdout).toContain('  answers 403')
  })

  it('exits with 3 for undecided requests, unless a verdict is assumed', async () => {
    const manifests = ['-f', running.manifests, ...curl('denied', '-A test')]
    const { code, simulations } = await simulate(...manifests)
    expect(code).toBe(3)
    expect(simulations[0]?.undecided).toEqual(['traffic.extAuth: it calls another service'])
    const assumed = await simulate(...manifests, '--assume', 'traffic.extAuth=403')
    expect(assumed.code).toBe(0)
    expect(assumed.simulations[0]?.outcome).toMatchObject({ verdict: 'answer', status: 403 })
    const wrong = await sluice('simulate', ...manifests, '--assume', 'extAuth=pass')
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toContain('expected a step such as traffic.extAuth')
  })

  it('simulates an access log, whose headers are unknown', async () => {
    const file = join(folder, 'access.jsonl')
    writeFileSync(file, running.stdout)
    const { code, simulations } = await simulate('-f', running.manifests, '--requests', file)
    expect(code).toBe(3)
    expect(simulations).toHaveLength(requests.length)
    const at = (name: string) => simulations.find(({ request }) => request.host === hostOf(name))
    expect(at('plain')?.outcome).toMatchObject({ verdict: 'forward', backend: 'default/main' })
    expect(at('team')?.undecided).toEqual([
      'traffic.authorization: an access log has no header fields',
    ])
  })

  it('reports what it cannot read, and answers the rest', async () => {
    const damaged = join(folder, 'damaged')
    mkdirSync(damaged)
    const [first = ''] = readdirSync(records).filter((name) => name.endsWith('.decisions'))
    copyFileSync(join(records, first), join(damaged, first))
    const size = readFileSync(join(damaged, first)).length
    truncateSync(join(damaged, first), size - 3)
    const log = ['--log-file', running.logFile]
    const { stderr } = await simulate(...log, '--requests', damaged)
    expect(stderr).toMatch(/\.decisions: offset \d+: /)
    const har = join(folder, 'broken.har')
    const good = { request: { method: 'GET', url: `http://${hostOf('plain')}/`, headers: [] } }
    writeFileSync(har, JSON.stringify({ log: { entries: [{}, good] } }))
    const { code, simulations, stderr: problems } = await simulate(...log, '--har', har)
    expect(problems).toContain(`${har}: entry 0: expected an object at request`)
    expect([code, simulations.length]).toEqual([0, 1])
    const none = await simulate(...log, '--requests', join(folder, 'absent'))
    expect([none.code, none.stderr]).toEqual([
      2,
      `sluice: ${join(folder, 'absent')} does not exist\n`,
    ])
  })

  it('takes one source of requests', async () => {
    const { code, stderr } = await simulate('-f', running.manifests)
    expect(code).toBe(2)
    expect(stderr).toContain(
      'name the requests with exactly one of --curl, --har, --requests and --host',
    )
  })
})
