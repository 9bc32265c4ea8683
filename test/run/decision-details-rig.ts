/** Requests to policies and backends, and how the record of each is explained. */
import { expect } from 'vitest'
import type { TestRequest } from '../support/http-client.ts'
import { inSeconds, keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import { toBackend, toPool } from '../support/manifests.ts'

type Fields = Readonly<Record<string, unknown>>

/** Requests to one route, whose last one is recorded as told. */
interface Case {
  /** The backend; `main` by default. */
  readonly backend?: Fields
  /** Settings in `traffic` of policies on the route. */
  readonly policies?: readonly Fields[]
  readonly requests?: readonly TestRequest[]
  readonly status: number
  /** The step that answers; not set if no step does. */
  readonly step?: string
  readonly detail?: string | RegExp
  /** Texts, or matchers of texts. */
  readonly notes?: readonly unknown[]
}

const key = await signingKey('one')
const other = await signingKey('other')

export const rule = (action: string, ...matchExpressions: string[]) => ({
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
export const authorization = { status: 403, step: 'traffic.authorization' }
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

export const prompt = (content: string, stream = false): TestRequest => ({
  method: 'POST',
  path: '/v1/chat/completions',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'm-1', stream, messages: [{ role: 'user', content }] }),
})
const mcpHeaders = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}
export const rpc = (method: string, params: Fields): TestRequest => ({
  method: 'POST',
  headers: mcpHeaders,
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
})

export const cases: Readonly<Record<string, Case>> = {
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
    detail:
      /^limit 1 requests per hour with burst 1, 0 left, admits again in (1 h|\d+ min( \d+ s)?)$/,
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
  'ext-auth-grpc': {
    policies: [{ extAuth: { backendRef: toBackend('ext-auth'), grpc: {} } }],
    status: 418,
    step: 'traffic.extAuth',
    detail: 'the service denied the request with status 418',
  },
  'limit-over': {
    policies: [
      { rateLimit: { global: { domain: 'shop', backendRef: toBackend('limits'), descriptors } } },
    ],
    status: 429,
    step: 'traffic.rateLimit',
    detail: 'global limit 7 of domain shop, 0 left, admits again in 30 s',
  },
  'limit-tokens': {
    policies: [{ rateLimit: { local: [{ tokens: 1, unit: 'Hours' }] } }],
    backend: toBackend('limited'),
    requests: [prompt('Hello'), prompt('Hello')],
    status: 429,
    step: 'traffic.rateLimit',
    detail:
      /^limit 1 tokens per hour with burst 0, 0 left, admits again in \d+ (d|h|min)( \d+ (h|min|s))?$/,
    notes: [expect.stringMatching(/^limit 1 tokens per hour/)],
  },
  'ext-proc-answer': {
    policies: [{ extProc: { backendRef: toBackend('processor') } }],
    status: 410,
    step: 'traffic.extProc',
    detail: 'the processor answered with status 410',
  },
  webhook: {
    backend: toBackend('hooked'),
    requests: [prompt('Hello')],
    status: 422,
    step: 'backend.ai',
    detail: 'request guard 0 (webhook): Reject',
    notes: ['request guard 0 (webhook): Reject'],
  },
  unreadable: {
    backend: toBackend('hooked'),
    requests: [{ ...prompt(''), body: '{"model":' }],
    status: 400,
    detail: 'the request cannot be read or converted',
  },
  'mcp-token': {
    backend: toBackend('secured'),
    requests: [rpc('tools/list', {})],
    status: 401,
    step: 'backend.mcp',
    detail: 'no bearer token',
    notes: ['no bearer token'],
  },
  'mcp-session': {
    backend: toBackend('sessions'),
    requests: [{ ...rpc('ping', {}), headers: { ...mcpHeaders, 'mcp-session-id': 'unknown' } }],
    status: 404,
    detail: 'the session is not known',
  },
  'mcp-accept': {
    backend: toBackend('sessions'),
    requests: [{ method: 'POST' }],
    status: 406,
    detail: 'Not Acceptable: the client must accept application/json and text/event-stream',
  },
  'mcp-dead': {
    backend: toBackend('dead'),
    requests: [rpc('tools/list', {})],
    status: 503,
    detail: /^upstream call failed: connection failure/,
  },
  picker: {
    backend: toPool('pool'),
    status: 200,
    step: undefined,
    notes: [
      expect.stringMatching(/^no endpoint picked, continues \(FailOpen\): endpoint picker failed/),
    ],
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
