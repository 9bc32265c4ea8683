/** Policies and routes that read `mcp-method` and `mcp-name` bind clients of all revisions. */
import { beforeEach, describe, expect, it } from 'vitest'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  mcpBackend,
  policy,
  routeByPath,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { rawSession } from '../support/mcp-client.ts'
import { type LenientServer, startLenientServer } from '../support/mcp-lenient-server.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { startRateLimitServer } from '../support/rate-limit-server.ts'

const server = useFixture(startLenientServer)
const limits = useFixture(startRateLimitServer)
const auth = useFixture(startExtAuthServer)
const port = await freePort()
const early = await freePort()

const nameOf = 'request.headers["mcp-name"]'
const deny = (expression: string) => ({
  authorization: { action: 'Deny', policy: { matchExpressions: [expression] } },
})
const limited = (unit: object = {}) => ({
  rateLimit: {
    global: {
      domain: 'tools',
      backendRef: toBackend('limits'),
      descriptors: [{ entries: [{ name: 'tool', expression: nameOf }], ...unit }],
    },
  },
})

/** Policies by the name of the route. */
const policies: Readonly<Record<string, object>> = {
  limited: limited(),
  denied: deny(`${nameOf} == "delete" || request.headers["mcp-method"] == "prompts/get"`),
  authorized: { extAuth: { backendRef: toBackend('auth'), grpc: {} } },
  sse: deny(`${nameOf} == "delete"`),
  others: deny('request.headers["x-team"] == "bad"'),
}

const target = ({ port }: LenientServer) => ({
  name: 'one',
  static: { host: '127.0.0.1', port },
})

useGateway(() => {
  const byName = (value: string) => [
    { path: { value: '/routed' }, headers: [{ name: 'Mcp-Name', value }] },
  ]
  return {
    manifests: [
      gateway(port, {
        listeners: [
          { name: 'http', port, protocol: 'HTTP' },
          { name: 'early', port: early, protocol: 'HTTP' },
        ],
      }),
      staticBackend('limits', limits.port),
      staticBackend('auth', auth.port),
      mcpBackend('tools', [target(server)]),
      ...Object.entries(policies).flatMap(([name, traffic]) => [
        mcpBackend(name, [target(server)]),
        routeByPath(name),
        policy(name, `HTTPRoute/${name}`, { traffic }),
      ]),
      httpRoute('routed', {
        rules: [
          { name: 'one', matches: byName('delete'), backendRefs: [toBackend('tools')] },
          { matches: [{ path: { value: '/routed' } }], backendRefs: [toBackend('tools')] },
        ],
      }),
      policy('routed', 'HTTPRoute/routed#one', {
        traffic: { directResponse: { status: 418, body: 'by name' } },
      }),
      policy('early', 'Gateway/edge#early', {
        traffic: { phase: 'PreRouting', ...deny(`${nameOf} == "delete"`) },
      }),
    ],
  }
})

const call = (name: string, id: number) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: {} },
})
const encoded = (name: string) => `=?base64?${Buffer.from(name).toString('base64')}?=`
const calls = () => server.received.filter((body) => body.includes('"tools/call"')).length
const asked = () =>
  limits.asked.flatMap(({ descriptors }) => descriptors.map(({ entries }) => entries[0]?.value))

beforeEach(() => limits.answer({ overallCode: 1 }))

describe('a limit by the name of a tool', () => {
  it('counts each call of a client of an older revision', async () => {
    const session = await rawSession(port, '/limited')
    const before = asked().length
    for (let id = 1; id < 4; id++) {
      expect((await session.send(port, call('who', id))).status).toBe(200)
    }
    expect(asked().slice(before)).toEqual(['who', 'who', 'who'])
    limits.answer({ overallCode: 2 })
    const sent = calls()
    expect((await session.send(port, call('who', 5))).status).toBe(429)
    expect(calls()).toBe(sent)
  })

  it('counts a name that is encoded without need as the same name', async () => {
    const session = await rawSession(port, '/limited')
    const before = asked().length
    await session.send(port, call('who', 1), { 'mcp-name': encoded('who') })
    await sendModern(
      `http://127.0.0.1:${port}/limited`,
      modernRequest('tools/call', { name: 'who' }),
      {
        headers: { 'mcp-name': encoded('who') },
      },
    )
    expect(asked().slice(before)).toEqual(['who', 'who'])
  })

  it('cannot be divided by a header that differs from the body', async () => {
    const session = await rawSession(port, '/limited')
    const before = calls()
    expect((await session.send(port, call('who', 1), { 'mcp-name': 'x' })).status).toBe(400)
    expect(calls()).toBe(before)
  })

  it.each<Record<string, string>>([{}, { 'mcp-method': 'tools/call', 'mcp-name': 'who' }])(
    'refuses batches, which one name cannot describe (%o)',
    async (headers) => {
      const session = await rawSession(port, '/limited', '2025-03-26')
      const before = calls()
      const batch = JSON.stringify([call('who', 1), call('who', 2)])
      const { status, message } = await session.send(port, batch, headers)
      expect(status).toBe(400)
      expect(message).toMatchObject({ error: { message: expect.stringContaining('each message') } })
      expect(calls()).toBe(before)
      expect((await session.send(port, JSON.stringify([call('who', 3)]))).status).toBe(200)
      expect(asked().at(-1)).toBe('who')
    },
  )
})

describe('rules by the name and method of a message', () => {
  it('refuse calls of clients of an older revision', async () => {
    const session = await rawSession(port, '/denied')
    const before = calls()
    expect((await session.send(port, call('delete', 1))).status).toBe(403)
    expect(
      (await session.send(port, call('delete', 1), { 'mcp-method': 'tools/call' })).status,
    ).toBe(403)
    const prompt = { ...call('x', 2), method: 'prompts/get' }
    expect((await session.send(port, prompt)).status).toBe(403)
    expect(calls()).toBe(before)
    expect((await session.send(port, call('who', 3))).status).toBe(200)
  })

  it('refuse a modern client that encodes the name', async () => {
    const request = modernRequest('tools/call', { name: 'delete' })
    const headers = { 'mcp-name': encoded('delete') }
    const { status } = await sendModern(`http://127.0.0.1:${port}/denied`, request, { headers })
    expect(status).toBe(403)
  })

  it('apply before routing', async () => {
    const session = await rawSession(early, '/others')
    expect((await session.send(early, call('delete', 1))).status).toBe(403)
    expect((await session.send(early, call('who', 2))).status).toBe(200)
  })

  it('apply to clients of the older transport', async () => {
    const origin = `http://127.0.0.1:${port}`
    const stream = await fetch(`${origin}/sse`, { headers: { accept: 'text/event-stream' } })
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!/data: \S+\n/.test(text)) text += (await reader?.read())?.value ?? ''
    const [, path = ''] = /data: (\S+)\n/.exec(text) ?? []
    const post = async (body: object) => {
      const headers = { 'content-type': 'application/json' }
      const request = { method: 'POST', headers, body: JSON.stringify(body) }
      return (await fetch(`${origin}${path}`, request)).status
    }
    expect(await post(call('delete', 1))).toBe(403)
    expect(await post(call('who', 2))).toBe(202)
    await reader?.cancel()
  })

  it('do not concern batches of routes that read other headers', async () => {
    const session = await rawSession(port, '/others', '2025-03-26')
    const batch = JSON.stringify([call('who', 1), call('delete', 2)])
    expect((await session.send(port, batch)).messages).toHaveLength(2)
  })
})

describe('other readers of the headers', () => {
  it('an authorization service gets them', async () => {
    const session = await rawSession(port, '/authorized')
    await session.send(port, call('who', 1))
    expect(auth.asked.at(-1)?.request?.http?.headers).toMatchObject({
      'mcp-method': 'tools/call',
      'mcp-name': 'who',
    })
  })

  it('a route matches them', async () => {
    const session = await rawSession(port, '/routed')
    expect((await session.send(port, call('delete', 1))).status).toBe(418)
    expect((await session.send(port, call('who', 2))).status).toBe(200)
  })

  it('a route refuses batches only if their messages have other routes', async () => {
    const session = await rawSession(port, '/routed', '2025-03-26')
    const batch = (...names: string[]) => JSON.stringify(names.map((name, id) => call(name, id)))
    expect((await session.send(port, batch('who', 'other'))).messages).toHaveLength(2)
    expect((await session.send(port, batch('who', 'delete'))).status).toBe(400)
  })
})
