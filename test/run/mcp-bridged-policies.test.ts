/** Policies between clients and servers of different eras, and requests that must not pass a rule. */
import { beforeEach, describe, expect, it } from 'vitest'
import { recordsIn } from '../support/decision-records.ts'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  mcpBackend,
  policy,
  routeByPath,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { connectClient, rawSession } from '../support/mcp-client.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { ModernServer } from '../support/mcp-modern-server.ts'
import { startOAuthServer } from '../support/oauth-server.ts'
import { waitFor } from '../support/wait-for.ts'

const folder = useFolder('sluice-bridged-policies-')

const modern = useFixture(
  () =>
    new ModernServer({
      capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} },
      answers: {
        'tools/call': ({ params }) => ({ content: [], structuredContent: { name: params.name } }),
        'prompts/get': () => ({ messages: [] }),
        'resources/read': () => ({ contents: [], ttlMs: 0, cacheScope: 'private' }),
        'completion/complete': () => ({ completion: { values: ['v'] } }),
        'made/up': () => ({ leaked: true }),
      },
    }).start(),
  (server) => server.kill(),
)
const legacy = useFixture(() =>
  startMcpItemsServer({
    tools: ['echo', 'delete'],
    prompts: ['hello', 'secret'],
    resources: ['test://open', 'test://secret'],
  }),
)
const idp = useFixture(() => startOAuthServer({ kind: 'IdpB' }))
const port = await freePort()

const servers = { modern, legacy }
type Era = keyof typeof servers
const eras: readonly Era[] = ['modern', 'legacy']

const target = (name: string, server: { readonly port: number }) => ({
  name,
  static: { host: '127.0.0.1', port: server.port },
})
const matchExpressions = [
  'mcp.tool.name == "echo"',
  'mcp.prompt.name == "hello"',
  'mcp.resource.uri == "test://open"',
]
const authorization = { action: 'Allow', policy: { matchExpressions } }

const running = useGateway(() => {
  const authentication = {
    issuer: idp.issuer,
    jwks: { jwksPath: idp.keysPath, backendRef: toBackend('idp') },
  }
  const served = (name: string, targets: readonly Json[], mcp: object = {}) => [
    // The legacy server gives session ids, which modern clients cannot keep.
    mcpBackend(name, targets, name.endsWith('-modern') ? {} : { sessionRouting: 'Stateless' }),
    routeByPath(name),
    policy(name, `GatewayBackend/${name}`, { backend: { mcp: { authorization, ...mcp } } }),
  ]
  const perEra = eras.flatMap((era) => {
    const targets = [target('only', servers[era])]
    return [
      ...served(`ruled-${era}`, targets),
      ...served(`signed-${era}`, targets, { authentication }),
      ...served(`counted-${era}`, targets),
      policy(`counted-${era}-local`, `HTTPRoute/counted-${era}`, {
        traffic: { rateLimit: { local: [{ requests: 3, unit: 'Hours' }] } },
      }),
    ]
  })
  const both = [target('new', modern), target('old', legacy)]
  return {
    manifests: [
      gateway(port),
      staticBackend('idp', idp.port),
      ...perEra,
      ...served('ruled-both', both),
    ],
    args: ['--record', 'all', '--record-dir', folder],
  }
})

const url = (path: string) => `http://127.0.0.1:${port}/${path}`
type Json = Record<string, unknown>
interface Answer {
  readonly status: number
  readonly message: unknown
}
type Send = (method: string, params?: Json, headers?: Record<string, string>) => Promise<Answer>

/** A client of an era at a path; a legacy one begins its session with the first request. */
function client(era: Era, path: string): Send {
  if (era === 'modern') {
    return (method, params, headers = {}) =>
      sendModern(url(path), modernRequest(method, params), { headers })
  }
  const session = rawSession(port, `/${path.split('/')[0]}`)
  return async (method, params = {}, headers = {}) => {
    const message = { jsonrpc: '2.0', id: 1, method, params }
    return (await session).at(`/${path}`).send(port, message, headers)
  }
}

/** What reached a server beyond what the gateway itself asks. */
const itemMethod = /^(tools\/call|prompts\/get|resources\/read|completion\/complete|made\/up)/
const reached = () =>
  modern.received.filter(({ method }) => itemMethod.test(method)).length + legacy.uses.length
let before = 0
beforeEach(() => {
  before = reached()
})

const crossed: readonly (readonly [Era, Era])[] = [
  ['modern', 'legacy'],
  ['legacy', 'modern'],
]

describe.each(crossed)('a %s client of a %s server', (from, to) => {
  it.each([
    ['tools/call', { name: 'echo', arguments: {} }, { name: 'delete', arguments: {} }],
    ['prompts/get', { name: 'hello' }, { name: 'secret' }],
    ['resources/read', { uri: 'test://open' }, { uri: 'test://secret' }],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'hello' }, argument: { name: 'a', value: '' } },
      { ref: { type: 'ref/prompt', name: 'secret' }, argument: { name: 'a', value: '' } },
    ],
  ])('reaches only allowed items with %s', async (method, allowed, refused) => {
    const send = client(from, `ruled-${to}`)
    expect((await send(method, refused)).message).toMatchObject({ error: { code: -32602 } })
    expect(reached()).toBe(before)
    expect((await send(method, allowed)).message).toHaveProperty('result')
  })

  it('needs a valid token if the server is behind authentication', async () => {
    const path = `signed-${to}`
    const name = { name: 'echo', arguments: {} }
    const token = { authorization: `Bearer ${await idp.token({ group: 'sales' })}` }
    const begun = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }
    for (const headers of [{}, { authorization: `${token.authorization}x` }]) {
      const answer =
        from === 'modern'
          ? await sendModern(url(path), modernRequest('tools/call', name), { headers })
          : await fetch(url(path), {
              method: 'POST',
              headers: { 'content-type': 'application/json', ...headers },
              body: JSON.stringify(begun),
            })
      expect(answer.status).toBe(401)
      expect(answer.headers.get('www-authenticate')).toContain('resource_metadata=')
    }
    expect(reached()).toBe(before)
    if (from === 'modern') {
      const headers = token
      const answer = await sendModern(url(path), modernRequest('tools/call', name), { headers })
      expect(answer.message).toHaveProperty('result')
    } else {
      const signedIn = await connectClient(port, `/${path}`, {}, token)
      expect(await signedIn.callTool(name)).toHaveProperty('content')
      await signedIn.close()
    }
  })

  it('is counted by method', async () => {
    const address = /metrics: (\S+)/.exec(running.stderr)?.[1] ?? ''
    const counter = /sluice_mcp_requests_total\{[^}]*method="tools\/call"[^}]*\} (\d+)/g
    const count = async () => {
      const metrics = await (await fetch(address)).text()
      return [...metrics.matchAll(counter)].reduce((sum, [, value]) => sum + Number(value), 0)
    }
    const counted = await count()
    await client(from, `ruled-${to}`)('tools/call', { name: 'echo', arguments: {} })
    await waitFor('the count', async () => (await count()) === counted + 1)
  })

  it('is limited in its requests', async () => {
    const statuses: number[] = []
    const send = client(from, `counted-${to}`)
    for (let n = 0; n < 4; n++) {
      statuses.push((await send('tools/call', { name: 'echo', arguments: {} })).status)
    }
    // A legacy client has spent two requests on its session.
    expect(statuses).toEqual(from === 'modern' ? [200, 200, 200, 429] : [200, 429, 429, 429])
  })

  it('is named in access log and decision record with method, target and tool', async () => {
    const id = `bridged-${from}`
    const send = client(from, `ruled-${to}/${id}`)
    await send('tools/call', { name: 'delete', arguments: {} }, { 'x-request-id': id })
    const line = await waitFor('the line', () =>
      running.stdout.split('\n').find((one) => one.includes(id) && one.includes('delete')),
    )
    expect(line).toContain('mcp.method.name=tools/call')
    expect(line).toContain('mcp.target=only')
    expect(line).toContain('gen_ai.tool.name=delete')
    expect(line).toContain('mcp.error.code=-32602')
    const record = await waitFor('the record', () => recordsIn(folder).get(id))
    expect(record).toMatchObject({ details: { 'gen_ai.tool.name': 'delete' } })
  })
})

describe.each(['ruled-modern', 'ruled-legacy', 'ruled-both'])(
  'behind rules (%s), a modern client reaches nothing',
  (path) => {
    const prefix = path === 'ruled-both' ? 'new_' : ''
    const refused = modernRequest('tools/call', { name: `${prefix}delete`, arguments: {} })
    const text = JSON.stringify(refused)
    const allowedName = `${prefix}echo`
    const envelope = /,"_meta":\{.*\}(?=\}\}$)/

    it.each<[string, { body?: string; headers?: Record<string, string> }]>([
      ['a header that names an allowed tool', { headers: { 'mcp-name': allowedName } }],
      ['a header that names another method', { headers: { 'mcp-method': 'tools/list' } }],
      ['no envelope', { body: text.replace(envelope, '') }],
      ['a notification', { body: text.replace('"id":1,', '') }],
      ['a batch', { body: `[${text}]` }],
      [
        'a name that comes twice',
        { body: text.replace('"name"', `"name":"${allowedName}","name"`) },
      ],
      ['an escaped key', { body: text.replace('"name"', `"name":"${allowedName}","n\\u0061me"`) }],
      ['a method that comes twice', { body: text.replace('"method"', '"method":"ping","method"') }],
      ['a session id', { headers: { 'mcp-session-id': 'made-up' } }],
    ])('with %s', async (_, { body = text, headers = {} }) => {
      const { message } = await sendModern(url(path), refused, { body, headers })
      expect(message).toHaveProperty('error')
      expect(reached()).toBe(before)
    })

    it.each(['made/up', 'tools/calls', 'Tools/Call', 'tools/call ', 'tasks/get', 'tasks/update'])(
      'with the method "%s"',
      async (method) => {
        const message = modernRequest(method, { name: 'delete', taskId: 'x' })
        const answer = await sendModern(url(path), message)
        expect(answer.status).toBeGreaterThanOrEqual(400)
        expect(answer.status).toBeLessThan(500)
        expect(answer.message).toHaveProperty('error')
        expect(modern.asked.at(-1)?.method).not.toBe(method)
        expect(reached()).toBe(before)
      },
    )
  },
)
