import { describe, expect, it } from 'vitest'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  service,
  staticBackend,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import { sendTls } from '../support/tls-client.ts'

type Fields = Readonly<Record<string, unknown>>

const authority = useAuthority()
const clientsOf = useAuthority()
const sa = (name: string, domain = 'cluster.local') =>
  clientsOf.issue([name, `spiffe://${domain}/ns/default/sa/${name}`])
const people = { agent: sa('agent'), other: sa('other'), foreign: sa('agent', 'example.org') }
type Person = keyof typeof people

const accessPolicy = (name: string, listener: string, spec: Fields) => ({
  apiVersion: 'agentic.networking.x-k8s.io/v1alpha1',
  kind: 'XAccessPolicy',
  metadata: { name },
  spec: {
    targetRefs: [
      { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'edge', sectionName: listener },
    ],
    ...spec,
  },
})

const allow = (name: string, listener: string, ...rules: Fields[]) =>
  accessPolicy(name, listener, {
    action: 'Allow',
    rules: rules.map((rule, index) => ({ name: `rule-${index}`, ...rule })),
  })

const agent = { type: 'ServiceAccount', serviceAccount: { name: 'agent' } }
const inline = (fields: Fields) => ({ authorization: { type: 'Inline', ...fields } })
const cel = (expression: string) => ({ authorization: { type: 'CEL', cel: { expression } } })
const base = { mcpBaseProtocolMethodsOption: 'MATCH_BASE_PROTOCOL_METHODS' }
const calls = (...params: string[]) => [{ name: 'tools/call', params }]

const asks = (name: string, listener: string, more: Fields) =>
  accessPolicy(name, listener, {
    action: 'ExternalAuth',
    externalAuth: {
      protocol: 'GRPC',
      grpc: {},
      backendRef: { name: 'authorizer', port: 80 },
      ...more,
    },
    rules: [{ name: 'calls', ...inline({ mcp: { methods: [{ name: 'tools' }] } }) }],
  })

const upstream = useUpstream('main')
const authorizer = useFixture(() => startExtAuthServer())
const port = await freePorts(
  'items',
  'skip',
  'spiffe',
  'plain',
  'cel',
  'several',
  'asks',
  'lost',
  'broken',
)
type Listener = keyof typeof port

const running = useGateway(() => {
  const tls = { certificateRefs: [{ name: 'server' }] }
  const listeners = Object.entries(port).map(([name, number]) => ({
    name,
    port: number,
    protocol: 'HTTPS',
    tls,
  }))
  const caCertificateRefs = [{ group: '', kind: 'ConfigMap', name: 'clients' }]
  return {
    manifests: [
      gateway(0, {
        listeners,
        tls: { frontend: { default: { validation: { caCertificateRefs } } } },
      }),
      tlsSecret('server', authority.issue(['a.example.com'])),
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'clients' },
        data: { 'ca.crt': clientsOf.certificate },
      },
      staticBackend('main', upstream.port),
      ...service('authorizer', [authorizer.port]),
      httpRoute('all', { rules: [{ backendRefs: [toBackend('main')] }] }),
      allow('items', 'items', {
        source: agent,
        ...inline({
          mcp: {
            ...base,
            methods: [
              ...calls('get-sum'),
              { name: 'prompts/get', params: ['daily'] },
              { name: 'resources/read', params: ['notes://a'] },
            ],
          },
        }),
      }),
      allow('skip', 'skip', inline({ mcp: { methods: calls('get-sum') } })),
      allow('spiffe', 'spiffe', {
        source: { type: 'SPIFFE', spiffe: 'spiffe://example.org/ns/default/sa/agent' },
      }),
      allow(
        'plain',
        'plain',
        inline({
          methods: ['GET'],
          paths: [{ value: '/api/' }, { type: 'Exact', value: '/one' }],
          hosts: ['*.example.com'],
          ports: [port.plain],
          headers: [
            { name: 'X-Team', value: 'a' },
            { name: 'x-stage', type: 'RegularExpression', value: 'test|live' },
          ],
        }),
        inline({ paths: [{ type: 'RegularExpression', value: '/v[0-9]+' }] }),
      ),
      allow(
        'cel',
        'cel',
        cel('request.mcp.tool_name == "get-sum" && request.path == "/mcp?a=request.path"'),
        cel("request.mcp.tool_name.startsWith('echo') && request.url_path == '/mcp'"),
        cel('mcp.tool.arguments.amount < 10'),
      ),
      allow('one', 'several', inline({ mcp: { methods: calls('get-sum', 'echo') } })),
      allow('two', 'several', inline({ mcp: { methods: calls('get-sum', 'get-env') } })),
      asks('asks', 'asks', {}),
      asks('later', 'asks', {}),
      allow(
        'not-env',
        'asks',
        inline({ mcp: { methods: [...calls('get-sum'), { name: 'prompts' }] } }),
      ),
      asks('lost', 'lost', { backendRef: { name: 'missing', port: 80 } }),
      allow('broken', 'broken', cel('request.mcp.tool_name ==')),
      allow('nowhere', 'nowhere', {}),
    ],
  }
})

/** An upgraded connection, whose messages the gateway would not read. */
const upgrade = { connection: 'upgrade', upgrade: 'websocket' }

const message = (method: string, params: Fields = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params,
})
const call = (name: string) => message('tools/call', { name, arguments: {} })

interface SendOptions {
  readonly who?: Person
  readonly path?: string
  readonly method?: string
  readonly host?: string
  readonly headers?: Readonly<Record<string, string>>
}

async function send(
  listener: Listener,
  body?: unknown,
  { who = 'agent', ...more }: SendOptions = {},
) {
  const { certificate: cert, key } = people[who]
  const client = { ca: authority.certificate, servername: 'a.example.com', cert, key }
  return sendTls(port[listener], client, {
    method: body === undefined ? 'GET' : 'POST',
    path: '/mcp',
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...more,
  })
}

/** Returns `passed`, the code of a JSON-RPC error, or the status. */
async function outcome(...request: Parameters<typeof send>): Promise<unknown> {
  const { status, body } = await send(...request)
  if (status !== 200) return status
  const { error } = JSON.parse(body) as { error?: { code: number } }
  return error?.code ?? 'passed'
}

const reasonsOf = async (name: string) => {
  const status = (await running.status('XAccessPolicy', name)) as
    | { ancestors: { conditions: { type: string; status: string; reason: string }[] }[] }
    | undefined
  return status?.ancestors.flatMap(({ conditions }) =>
    conditions.map((one) => `${one.type} ${one.status} ${one.reason}`),
  )
}

describe('an XAccessPolicy with action Allow', () => {
  it('lets its ServiceAccount use the listed tools, prompts and resources, and the base protocol', async () => {
    for (const allowed of [
      call('get-sum'),
      message('prompts/get', { name: 'daily' }),
      message('resources/read', { uri: 'notes://a' }),
      message('initialize'),
      message('server/discover'),
      message('tools/list'),
      message('completion/complete'),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 7, result: { action: 'accept' } },
      [call('get-sum'), message('ping')],
      undefined,
    ]) {
      expect([allowed, await outcome('items', allowed)]).toEqual([allowed, 'passed'])
    }
    const headers = { 'mcp-session-id': 'a' }
    expect(await outcome('items', undefined, { method: 'DELETE', headers })).toBe('passed')
    expect(await outcome('items', undefined, { method: 'DELETE' })).toBe(403)
    expect(await outcome('items', undefined, { headers: upgrade })).toBe(403)
    expect(await outcome('spiffe', undefined, { who: 'foreign', headers: upgrade })).toBe('passed')
  })

  it('answers other calls with a JSON-RPC error, and all other requests with 403', async () => {
    const refused = await send('items', call('echo'))
    expect([refused.status, refused.headers['content-type']]).toEqual([200, 'application/json'])
    expect(JSON.parse(refused.body)).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: 403, message: 'Access to this tool is forbidden.' },
    })
    for (const [body, code] of [
      [message('prompts/get', { name: 'weekly' }), 403],
      [message('resources/read', { uri: 'notes://b' }), 403],
      [message('resources/list'), 403],
      [message('tools/call', { name: ['get-sum'] }), 403],
      [[message('ping'), call('echo')], 403],
      // Parsers that ignore case, or that take the first of two keys, read another call in these.
      ['{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}', 403],
      [
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"get-sum"}}',
        403,
      ],
      ['{"jsonrpc":"2.0","id":1,"result":{},"method":"ping"}', 403],
      ['no json', 403],
    ] as const) {
      expect([body, await outcome('items', body)]).toEqual([body, code])
    }
    const headers = { 'content-encoding': 'gzip' }
    expect(await outcome('items', call('get-sum'), { headers })).toBe(403)
    // Servers differ in how they read content-type, so the result must not depend on it.
    for (const type of ['Application/JSON', 'text/plain']) {
      const typed = { headers: { 'content-type': type } }
      expect(await outcome('items', call('echo'), typed)).toBe(403)
      expect(await outcome('items', call('get-sum'), typed)).toBe('passed')
    }
  })

  it('refuses other clients, also of the same name in another trust domain', async () => {
    for (const who of ['other', 'foreign'] as const) {
      expect(await outcome('items', call('get-sum'), { who })).toBe(403)
      expect(await outcome('items', undefined, { who })).toBe(403)
    }
    expect(await outcome('spiffe', call('any'), { who: 'foreign' })).toBe('passed')
    expect(await outcome('spiffe', call('any'))).toBe(403)
  })

  it('refuses the base protocol unless it asks for it', async () => {
    expect(await outcome('skip', call('get-sum'), { who: 'other' })).toBe('passed')
    for (const body of [message('initialize'), message('tools/list'), undefined]) {
      expect(await outcome('skip', body)).toBe(403)
    }
  })

  it('compares methods, paths, hosts, ports and headers of HTTP', async () => {
    const headers = { 'x-team': 'a', 'x-stage': 'live' }
    for (const path of ['/api', '/api/x', '/one?a=b']) {
      expect(await outcome('plain', undefined, { path, headers })).toBe('passed')
    }
    expect(await outcome('plain', undefined, { path: '/v12' })).toBe('passed')
    for (const other of [
      { path: '/apis' },
      { path: '/one/two' },
      { path: '/v12/x' },
      { path: '/one', method: 'PUT' },
      { path: '/one', host: 'example.com' },
      { path: '/one', headers: { ...headers, 'x-team': 'b' } },
      { path: '/one', headers: { ...headers, 'x-stage': 'livelier' } },
      { path: '/one', headers: { 'x-team': 'a' } },
    ]) {
      expect([other, await outcome('plain', undefined, { headers, ...other })]).toEqual([
        other,
        403,
      ])
    }
  })

  it('evaluates expressions with the variables of kube-agentic-networking, for calls of tools only', async () => {
    const path = '/mcp?a=request.path'
    expect(await outcome('cel', call('get-sum'), { path })).toBe('passed')
    expect(await outcome('cel', call('get-sum'))).toBe(403)
    expect(await outcome('cel', call('echo-all'), { path })).toBe('passed')
    expect(await outcome('cel', message('prompts/get', { name: 'echo' }))).toBe(403)
    const pay = (amount: unknown) =>
      outcome('cel', message('tools/call', { name: 'pay', arguments: { amount } }))
    expect([await pay(9), await pay(10), await pay('9')]).toEqual(['passed', 403, 403])
  })

  it('allows a request only if every other policy of the target does', async () => {
    expect(await outcome('several', call('get-sum'))).toBe('passed')
    expect(await outcome('several', call('echo'))).toBe(403)
    expect(await outcome('several', call('get-env'))).toBe(403)
  })
})

describe('an XAccessPolicy with action ExternalAuth', () => {
  it('asks the service about matching requests, before the rules of other policies', async () => {
    authorizer.answer({})
    authorizer.forget()
    expect(await outcome('asks', call('get-sum'))).toBe('passed')
    expect(await outcome('asks', call('get-env'))).toBe(403)
    expect(authorizer.asked.length).toBe(2)
    expect(await outcome('asks', message('prompts/list'))).toBe('passed')
    expect(authorizer.asked.length).toBe(2)
    authorizer.answer({ status: { code: 7 } })
    expect(await outcome('asks', call('get-sum'))).toBe(403)
    expect(await outcome('asks', message('prompts/list'))).toBe('passed')
  })

  it('asks the service if one message of a batch matches, or if the body cannot be read', async () => {
    authorizer.answer({ status: { code: 7 } })
    for (const body of [
      [message('prompts/list'), call('get-sum')],
      '{"jsonrpc":"2.0","id":1,"method":"prompts/list","Method":"tools/call"}',
    ]) {
      authorizer.forget()
      expect(await outcome('asks', body)).toBe(403)
      expect(authorizer.asked.length).toBe(1)
    }
    authorizer.forget()
    expect(await outcome('asks', undefined, { headers: upgrade })).toBe(403)
    expect(authorizer.asked.length).toBe(1)
  })

  it('refuses all requests to its target if the service does not exist', async () => {
    expect(await outcome('lost', call('get-sum'))).toBe(500)
    expect(await reasonsOf('lost')).toEqual([
      'Accepted True Accepted',
      'ResolvedRefs False BackendNotFound',
    ])
  })
})

describe('the status of an XAccessPolicy', () => {
  it('has a reason for each policy that is not in force', async () => {
    const resolved = 'ResolvedRefs True ResolvedRefs'
    expect(await reasonsOf('items')).toEqual(['Accepted True Accepted', resolved])
    expect(await reasonsOf('asks')).toEqual(['Accepted True Accepted', resolved])
    expect(await reasonsOf('later')).toEqual(['Accepted False LimitPerTargetExceeded', resolved])
    expect(await reasonsOf('nowhere')).toEqual(['Accepted False TargetNotFound', resolved])
    expect(await reasonsOf('broken')).toEqual(['Accepted False InvalidCEL', resolved])
    expect(await outcome('broken', call('get-sum'))).toBe(500)
  })
})
