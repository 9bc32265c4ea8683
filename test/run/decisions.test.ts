import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { RecordedDecision } from '../../src/past/decisions/record.ts'
import { useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  hostOf,
  manifest,
  mcpBackend,
  policy,
  routeByHost,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'

const folder = useFolder('sluice-records-')
const port = await freePort()
const upstream = useUpstream()
const busy = useUpstream('busy', (_, response) => {
  response.writeHead(503)
  response.end()
})
const model = useFixture(startVendorA)
const tools = useFixture(() => startMcpItemsServer({ tools: ['search', 'delete'] }))
const denial = 'request.path.startsWith("/admin")'
const guard = policy('guard', 'HTTPRoute/guarded', {
  traffic: { authorization: { action: 'Deny', policy: { matchExpressions: [denial] } } },
})
const running = useGateway(() => ({
  args: ['--record', 'all', '--record-dir', folder],
  manifests: {
    'all.yaml': manifest(
      gateway(port),
      staticBackend('main', upstream.port),
      ...['guarded', 'limited', 'open'].map((name) => routeByHost(name, toBackend('main'))),
      policy('methods', 'Gateway/edge', {
        traffic: {
          authorization: {
            action: 'Deny',
            policy: { matchExpressions: ['request.method == "PUT"'] },
          },
        },
      }),
      policy('limit', 'HTTPRoute/limited', {
        traffic: { rateLimit: { local: [{ requests: 1, unit: 'Hours' }] } },
      }),
      aiBackend(
        'chat',
        { provider: { vendorA: {}, host: '127.0.0.1', port: model.port } },
        { ai: { promptGuard: { request: [{ regex: { builtins: ['Email'] } }] } } },
      ),
      routeByHost('chat', toBackend('chat')),
      mcpBackend('tools', [{ name: 'items', static: { host: '127.0.0.1', port: tools.port } }], {
        sessionRouting: 'Stateless',
      }),
      routeByHost('tools', toBackend('tools')),
      policy('tools', 'GatewayBackend/tools', {
        backend: {
          mcp: {
            authorization: {
              action: 'Deny',
              policy: { matchExpressions: ['mcp.tool.name == "delete"'] },
            },
          },
        },
      }),
      ...service('half', [busy.port, upstream.port]),
      routeByHost(
        'half',
        { name: 'half', port: 80 },
        { retry: { codes: [503], attempts: 1, backoff: '1ms' } },
      ),
    ),
    'guard.yaml': manifest(guard),
  },
}))

/** Sends a request; returns its id, once its record is there. */
async function recorded(name: string, path = '/', body?: object): Promise<string> {
  const { headers } = await running.send(port, {
    host: hostOf(name),
    path,
    ...(body && {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(body),
    }),
  })
  const id = `${headers['x-request-id']}`
  await waitFor('the record', async () => (await records('--id', id)).length > 0)
  return id
}

async function records(...args: string[]): Promise<RecordedDecision[]> {
  const { stdout } = await sluice('decisions', '--record-dir', folder, ...args, '-o', 'json')
  const lines = stdout.split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line) as RecordedDecision)
}

interface Explained {
  request: { id: string; host: string; path: string }
  position: number
  problem?: string
  listener: { object: string; name: string; generation: number; event: number; since: string }
  route?: { object: string; rule: number; generation: number; event: number }
  steps: {
    step: string
    object?: string
    generation?: number
    event?: number
    verdict: string
    reason?: string
  }[]
  attempts: { endpoint: string; failure: string }[]
  backend?: { name: string; endpoint?: string }
  response: { status: number; reason: string }
  change: string
}

const explainArgs = (id: string) => ['explain', 'request', '--id', id, '--record-dir', folder]

async function explained(id: string, ...args: string[]): Promise<Explained> {
  const log = args.length === 0 ? ['--log-file', running.logFile] : args
  const { stdout, stderr } = await sluice(...explainArgs(id), ...log, '-o', 'json')
  expect(stderr).toBe('')
  return JSON.parse(stdout) as Explained
}

async function explainedText(id: string): Promise<string> {
  return (await sluice(...explainArgs(id), '--log-file', running.logFile)).stdout
}

/** The event that put an object in force, as `sluice log` prints it. */
async function eventAt(position: number | undefined): Promise<string> {
  const { stdout } = await sluice('log', '--log-file', running.logFile)
  return stdout.split('\n').find((line) => line.startsWith(`${position} `)) ?? ''
}

describe('sluice explain request --id', () => {
  it('explains a 403 by authorization, with the event that put the policy in force', async () => {
    const id = await recorded('guarded', '/admin/users?page=2')
    const answer = await explained(id)
    expect(answer).toMatchObject({
      request: { id, host: 'guarded.example.com', path: '/admin/users', query: 'page=2' },
      listener: { object: 'Gateway default/edge', name: 'http', generation: 1 },
      route: { object: 'HTTPRoute default/guarded', rule: 0, generation: 1 },
      response: { status: 403, reason: 'Authorization' },
    })
    const step = answer.steps.at(-1)
    expect(step).toMatchObject({
      step: 'traffic.authorization',
      object: 'GatewayPolicy default/guard',
      generation: 1,
      verdict: 'answer',
    })
    expect(await eventAt(step?.event)).toContain('GatewayPolicy default guard')
    expect(step?.reason).toBe(`Deny rule 1 matched: ${denial}`)
    expect(answer.change).toBe(
      `spec.traffic.authorization of GatewayPolicy default/guard, generation 1 (${step?.reason})`,
    )
    const text = await explainedText(id)
    expect(text).toMatch(
      /traffic\.authorization +answer +GatewayPolicy default\/guard +generation 1/,
    )
    expect(text).toContain(`event ${step?.event}, since `)
    expect(text.split('\n').length).toBeLessThan(30)
  })

  it('names the policy of the rule that matched, if several are combined', async () => {
    const { headers } = await running.send(port, { host: hostOf('guarded'), method: 'PUT' })
    const id = `${headers['x-request-id']}`
    await waitFor('the record', async () => (await records('--id', id)).length > 0)
    const { steps, change } = await explained(id)
    const [gateways, routes] = ['GatewayPolicy default/methods', 'GatewayPolicy default/guard']
    expect(steps.at(-1)).toMatchObject({
      object: gateways,
      from: [{ object: gateways }, { object: routes }],
      reason: 'Deny rule 0 matched: request.method == "PUT"',
    })
    expect(change).toContain(`spec.traffic.authorization of ${gateways}`)
  })

  it('explains a 429 by a local rate limit', async () => {
    await recorded('limited')
    const id = await recorded('limited')
    const answer = await explained(id)
    expect(answer.response.status).toBe(429)
    expect(answer.steps.at(-1)).toMatchObject({
      step: 'traffic.rateLimit',
      object: 'GatewayPolicy default/limit',
      verdict: 'answer',
    })
    expect(answer.change).toMatch(
      /^wait until 20.*Z, or change spec\.traffic\.rateLimit of GatewayPolicy default\/limit/,
    )
  })

  it('explains a masked prompt, with the model and its tokens', async () => {
    const messages = [{ role: 'user', content: 'Mail ann@example.com' }]
    const id = await recorded('chat', '/v1/chat/completions', { model: 'm-1', messages })
    const answer = await explained(id)
    expect(answer.steps.slice(-1)).toMatchObject([
      {
        step: 'backend.ai',
        object: 'GatewayBackend default/chat',
        generation: 1,
        verdict: 'pass',
        reason: 'request guard 0 (regex): Mask, 1 match of builtin Email',
      },
    ])
    const text = await explainedText(id)
    expect(text).toMatch(/gen_ai\.request\.model +m-1/)
    expect(text).not.toContain('ann@')
  })

  it('explains the refusal of an MCP tool', async () => {
    const params = { name: 'delete', arguments: {} }
    const id = await recorded('tools', '/', { jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    const answer = await explained(id)
    expect(answer.change).toBe(
      'spec.backend.mcp of GatewayPolicy default/tools, generation 1 (tools/call of tool delete of target items: Deny rule 0 matched: mcp.tool.name == "delete")',
    )
    expect(await explainedText(id)).toMatch(/gen_ai\.tool\.name +delete/)
  })

  it('explains a failover between two endpoints', async () => {
    const failedOver = await waitFor('a failover', async () => {
      await recorded('half')
      return (await records('--route', 'default/half')).find(({ attempts }) => attempts.length > 0)
    })
    const answer = await explained(failedOver.id)
    expect(answer).toMatchObject({
      attempts: [{ endpoint: `127.0.0.1:${busy.port}`, failure: 'status 503' }],
      backend: { endpoint: `127.0.0.1:${upstream.port}` },
      response: { status: 200, reason: 'Upstream' },
    })
    const text = await explainedText(failedOver.id)
    expect(text).toMatch(/1 +127\.0\.0\.1:\d+ +status 503\n +2 +127\.0\.0\.1:\d+ +last/)
    expect(text).toContain('To change the outcome: nothing refused the request')
  })

  it('explains that no route matched', async () => {
    const id = await recorded('unknown')
    const { change, route } = await explained(id)
    expect(route).toBeUndefined()
    expect(change).toContain('no rule of listener http of Gateway default/edge matches GET /')
  })

  it('uses the versions that were in force when the request arrived', async () => {
    const before = await recorded('guarded', '/admin')
    const labelled = { ...guard, metadata: { name: 'guard', generation: 7 } }
    const changed = JSON.parse(
      JSON.stringify(labelled).replace('/admin', '/closed'),
    ) as typeof guard
    running.write('guard.yaml', manifest(changed))
    const closed = { host: hostOf('guarded'), path: '/closed' }
    await running.sendUntil(port, closed, ({ status }) => status === 403)
    const after = await recorded('guarded', '/closed')
    const [old, young] = [await explained(before), await explained(after)]
    expect(old.steps.at(-1)?.generation).toBe(1)
    expect(young.steps.at(-1)?.generation).toBeGreaterThan(1)
    expect(young.position).toBeGreaterThan(old.position)
    expect(young.steps.at(-1)?.event).toBeGreaterThan(old.steps.at(-1)?.event ?? 0)
  })

  it('answers from the record alone without a log, or if the log lacks the position', async () => {
    const id = await recorded('guarded', '/closed')
    const args = ['explain', 'request', '--id', id, '--record-dir', folder]
    const alone = await sluice(...args)
    expect(alone.stdout).toContain('no event log is given')
    expect(alone.stdout).toContain('traffic.authorization  answer  GatewayPolicy default/guard')
    const events = (await sluice('log', '--log-file', running.logFile, '-o', 'json')).stdout
    const { position } = await explained(id)
    const lines = events.trimEnd().split('\n')
    const parts = {
      'the log does not have position': lines.slice(0, position - 1),
      'the log no longer has position': lines.slice(position),
    }
    for (const [message, kept] of Object.entries(parts)) {
      const file = join(folder, 'part.jsonl')
      writeFileSync(file, kept.map((line) => `${line}\n`).join(''))
      expect(await explained(id, '--log-file', file)).toMatchObject({
        problem: expect.stringContaining(`${message} ${position}`),
        steps: [{ step: 'traffic.authorization', object: 'GatewayPolicy default/guard' }],
      })
    }
  })

  it('refuses --at before the position of the record', async () => {
    const id = await recorded('open')
    const log = ['--log-file', running.logFile]
    const { code, stderr } = await sluice(...explainArgs(id), ...log, '--at', '1')
    expect(code).toBe(2)
    expect(stderr).toContain('--at 1 is before position')
    const late = await sluice(...explainArgs(id), ...log, '--at', '2100-01-01')
    expect(late.code).toBe(0)
  })

  it('exits with 1 if no record has the id', async () => {
    const { code, stderr } = await sluice(...explainArgs('nothing'), '--log-file', running.logFile)
    expect(code).toBe(1)
    expect(stderr).toContain('no record has the id nothing')
  })
})

describe('sluice decisions', () => {
  it('prints one line for each record, in the order in which requests ended', async () => {
    const first = await recorded('open', '/first?a=b')
    const second = await recorded('open', '/second')
    const { code, stdout } = await sluice('decisions', '--record-dir', folder)
    expect(code).toBe(0)
    const lines = stdout.split('\n')
    const [a, b] = [first, second].map((id) => lines.findIndex((line) => line.includes(id)))
    expect(lines[a ?? -1]).toMatch(
      /^20\d\d-.*Z {2}.* {2}GET open\.example\.com\/first\?a=b {2}200 {2}Upstream {2}rule 0 of HTTPRoute default\/open {2}default\/main at 127/,
    )
    expect(b).toBeGreaterThan(a ?? 0)
  })

  it('selects records by status, route and time', async () => {
    await recorded('guarded', '/closed')
    const start = new Date().toISOString()
    const id = await recorded('open')
    expect((await records('--status', '403')).length).toBeGreaterThan(0)
    expect((await records('--status', '4xx')).every(({ response }) => response.status >= 400)).toBe(
      true,
    )
    const routes = new Set(
      (await records('--route', 'default/open')).map(({ route }) => route.route),
    )
    expect([...routes]).toEqual(['HTTPRoute default/open'])
    expect((await records('--since', start)).map((record) => record.id)).toEqual([id])
    expect((await records('--since', '1h')).length).toBeGreaterThan(1)
  })
})
