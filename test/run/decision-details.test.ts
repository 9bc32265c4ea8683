import { beforeAll, describe, expect, it } from 'vitest'
import type { RecordedDecision } from '../../src/decisions/record.ts'
import { recordsIn } from '../support/decision-records.ts'
import { useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import { inSeconds, keySetOf, sign, signingKey } from '../support/identity-provider.ts'
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
import { completes, failsA, startVendorA } from '../support/vendors/vendor-a.ts'

type Fields = Readonly<Record<string, unknown>>

/** Requests to one route, whose last one is recorded as told. */
interface Case {
  readonly policies: readonly Fields[]
  readonly requests?: readonly TestRequest[]
  readonly status: number
  /** The step that answers; not set if no step does. */
  readonly step?: string
  readonly detail?: string | RegExp
  readonly notes?: readonly string[]
}

const upstream = useUpstream()
const denying = useUpstream('denying', (_, response) => response.writeHead(401).end('no'))
const failing = useFixture(startVendorA)
const model = useFixture(startVendorA)
const items = useFixture(() => startMcpItemsServer({ tools: ['search', 'delete'] }))
const folder = useFolder('sluice-decisions-')
const port = await freePort()
const nobody = await freePort()
const key = await signingKey('one')
const other = await signingKey('other')

const rule = (action: string, ...matchExpressions: string[]) => ({
  authorization: { action, policy: { matchExpressions } },
})
const jwt = (more: Fields = {}) => ({
  jwtAuthentication: {
    providers: [
      {
        issuer: 'https://idp',
        audiences: ['shop'],
        jwks: { inline: JSON.stringify(keySetOf(key)) },
      },
    ],
    ...more,
  },
})
const bearer = (token: string): TestRequest => ({ headers: { authorization: `Bearer ${token}` } })
const basic = (text: string): TestRequest => ({
  headers: { authorization: `Basic ${Buffer.from(text).toString('base64')}` },
})
const claims = { iss: 'https://idp', aud: 'shop', sub: 'ann' }
const preflight: TestRequest = {
  method: 'OPTIONS',
  headers: { origin: 'https://evil.test', 'access-control-request-method': 'PUT' },
}
const authorization = { status: 403, step: 'traffic.authorization' }
const badKey = { status: 401, step: 'traffic.apiKeyAuthentication' }
const badUser = { status: 401, step: 'traffic.basicAuthentication' }
const badToken = { status: 401, step: 'traffic.jwtAuthentication', policies: [jwt()] }
const keys = { apiKeyAuthentication: { secretRef: { name: 'keys' } } }
const users = { basicAuthentication: { users: ['ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g='] } }
const extAuth = (name: string, http: Fields = {}) => ({
  extAuth: { backendRef: toBackend(name), http },
})
const descriptors = [{ entries: [{ name: 'all', expression: '"yes"' }] }]
const longRule = `request.path == "/${'a'.repeat(300)}"`

const cases: Readonly<Record<string, Case>> = {
  'deny-matched': {
    ...authorization,
    policies: [
      rule('Deny', 'request.path == "/x"'),
      rule('Deny', 'request.path.startsWith("/admin")'),
    ],
    requests: [{ path: '/admin/users' }],
    detail: 'Deny rule 1 matched: request.path.startsWith("/admin")',
  },
  'deny-failed': {
    ...authorization,
    policies: [rule('Deny', 'request.method + 1 == 2')],
    detail: 'Deny rule 0 failed: + does not take string, int: request.method + 1 == 2',
  },
  require: {
    ...authorization,
    policies: [rule('Require', 'request.headers["x-a"] == "1"', 'request.method == "PUT"')],
    detail:
      'Require rule 0 is false: request.headers["x-a"] == "1" || request.method == "PUT"; there is no "x-a"',
  },
  allow: {
    ...authorization,
    policies: [rule('Allow', 'request.method == "PUT"')],
    detail: 'no Allow rule matched: request.method == "PUT"',
  },
  'allow-long': {
    ...authorization,
    policies: [rule('Allow', longRule)],
    detail: `no Allow rule matched: ${longRule.slice(0, 200)}…`,
  },
  fail: {
    ...authorization,
    policies: [rule('Deny', 'fail("leaks " + request.headers["x-a"])')],
    requests: [{ headers: { 'x-a': 'data' } }],
    detail: /^Deny rule 0 failed: the expression called fail: fail\(/,
  },
  'key-missing': { ...badKey, policies: [keys], detail: 'no API key' },
  'key-unknown': {
    ...badKey,
    policies: [keys],
    requests: [bearer('k-2')],
    detail: 'unknown API key',
  },
  'key-none': {
    ...badKey,
    policies: [{ apiKeyAuthentication: { secretRef: { name: 'absent' } } }],
    requests: [bearer('k-2')],
    detail: 'the policy has no usable key',
  },
  'user-missing': { ...badUser, policies: [users], detail: 'no credentials' },
  'user-malformed': {
    ...badUser,
    policies: [users],
    requests: [{ headers: { authorization: 'Basic ?' } }],
    detail: 'malformed credentials',
  },
  'user-wrong': {
    ...badUser,
    policies: [users],
    requests: [basic('ann:wrong')],
    detail: 'unknown user or wrong password',
  },
  'token-missing': { ...badToken, detail: 'no bearer token found' },
  'token-expired': {
    ...badToken,
    requests: [bearer(await sign(key, { ...claims, exp: inSeconds(-300) }))],
    detail: 'the token has expired',
  },
  'token-issuer': {
    ...badToken,
    requests: [bearer(await sign(key, { ...claims, iss: 'https://other' }))],
    detail: 'the token is of an unknown issuer',
  },
  'token-audience': {
    ...badToken,
    requests: [bearer(await sign(key, { ...claims, aud: 'other' }))],
    detail: 'the token is for another audience',
  },
  'token-key': {
    ...badToken,
    requests: [bearer(await sign(other, claims))],
    detail: 'the token uses an unknown key',
  },
  'token-signature': {
    ...badToken,
    requests: [bearer(await sign(other, claims, { kid: 'one' }))],
    detail: 'the token has no valid signature',
  },
  'token-permissive': {
    policies: [jwt({ mode: 'Permissive' })],
    requests: [bearer('no token')],
    status: 200,
    notes: ['the token is invalid or malformed'],
  },
  'csrf-site': {
    policies: [{ csrf: {} }],
    requests: [{ method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } }],
    status: 403,
    step: 'traffic.csrf',
    detail: 'Sec-Fetch-Site names another site, and Origin is not listed',
  },
  'csrf-origin': {
    policies: [{ csrf: {} }],
    requests: [{ method: 'POST', headers: { origin: 'https://evil.test' } }],
    status: 403,
    step: 'traffic.csrf',
    detail: 'Origin is neither the destination nor listed',
  },
  cors: {
    policies: [{ cors: { allowOrigins: ['https://good.test'] } }],
    requests: [preflight],
    status: 200,
    step: 'traffic.cors',
    detail: 'Origin is not allowed',
  },
  'limit-local': {
    policies: [{ rateLimit: { local: [{ requests: 1, unit: 'Hours', burst: 1 }] } }],
    requests: [{}, {}, {}],
    status: 429,
    step: 'traffic.rateLimit',
    detail: /^limit 1 requests per Hours with burst 1, 0 left, admits again in \d+ ms$/,
  },
  'limit-global': {
    policies: [
      {
        rateLimit: {
          global: { domain: 'shop', backendRef: toBackend('nobody'), descriptors },
        },
      },
    ],
    status: 500,
    step: 'traffic.rateLimit',
    detail: /^the rate limit server failed: /,
  },
  'ext-auth-denied': {
    policies: [extAuth('denying')],
    status: 401,
    step: 'traffic.extAuth',
    detail: 'the service answered 401',
  },
  'ext-auth-failed': {
    policies: [extAuth('nobody')],
    status: 403,
    step: 'traffic.extAuth',
    detail: /^the service failed: /,
  },
  'ext-proc': {
    policies: [{ extProc: { backendRef: toBackend('nobody') } }],
    status: 500,
    step: 'traffic.extProc',
  },
  transformation: {
    policies: [
      {
        transformation: { request: { set: [{ name: 'x-user', value: 'jwt.sub + "x"' }] } },
      },
    ],
    status: 200,
    notes: ['x-user removed: there is no "sub"'],
  },
}

const prompt = (content: string, stream = false): TestRequest => ({
  method: 'POST',
  path: '/v1/chat/completions',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'm-1', stream, messages: [{ role: 'user', content }] }),
})
const mcpHeaders = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}
const rpc = (method: string, params: Fields): TestRequest => ({
  method: 'POST',
  headers: mcpHeaders,
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
})

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
      staticBackend('main', upstream.port),
      staticBackend('denying', denying.port),
      staticBackend('nobody', nobody),
      secret('keys', { one: 'k-1' }),
      ...Object.entries(cases).flatMap(([name, { policies }]) => [
        routeByHost(name, toBackend('main')),
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
      attempts: [{ endpoint, failure: 'status 503' }],
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
        notes: [`tools/list hides tool delete of target items, for example: ${rule}`],
      },
    ])
  })
})
