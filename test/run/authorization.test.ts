import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'

type Action = 'Allow' | 'Deny' | 'Require'

/** A rule, as it stands under `spec`. */
const rule = (action: Action | undefined, ...matchExpressions: string[]) => ({
  traffic: { authorization: { ...(action && { action }), policy: { matchExpressions } } },
})

const early = (action: Action, ...matchExpressions: string[]) => {
  const { traffic } = rule(action, ...matchExpressions)
  return { traffic: { phase: 'PreRouting', ...traffic } }
}

/** Name of a route -> rules on it. Each route has its own host, `<name>.example.com`. */
const rules: Readonly<Record<string, readonly ReturnType<typeof rule>[]>> = {
  open: [],
  allow: [rule('Allow', 'request.headers["x-team"] == "a"', 'request.path == "/public"')],
  default: [rule(undefined, 'request.method == "GET"')],
  deny: [rule('Deny', 'request.headers["x-team"] == "bad"', 'request.path.startsWith("/admin")')],
  require: [
    rule('Require', 'request.headers["x-a"] == "1"', 'request.headers["x-b"] == "1"'),
    rule('Require', 'request.headers["x-c"] == "1"'),
  ],
  mixed: [
    rule('Deny', 'request.path == "/denied"'),
    rule('Require', 'has(request.headers.key)'),
    rule('Allow', 'request.headers.key == "k"'),
  ],
  none: [rule('Allow')],
  nothing: [rule('Deny')],
  absent: [rule('Deny', 'jwt.sub == "a"', 'apiKey.group == "x"', 'request.headers["no"] == "x"')],
  null: [rule('Deny', 'jwt'), rule('Deny', 'jwt != null')],
  wrong: [rule('Deny', 'request.headers["n"] + 1 == 2')],
  'wrong-allow': [rule('Allow', 'request.headers["n"] + 1 == 2', '"a"')],
  text: [rule('Deny', '"a text"')],
  named: [rule('Deny', 'request.host == "named.example.com"')],
  addressed: [rule('Deny', 'request.uri.startsWith("http://addressed.example.com/")')],
  hidden: [rule('Deny', 'request.headers["x"].startsWith("b") || request.headers["absent"] == 1')],
  cost: [rule('Deny', `request.headers["n"].split(",").all(a, ${nested(4)})`)],
  'cost-allow': [rule('Allow', `request.headers["n"].split(",").all(a, ${nested(4)})`)],
  body: [rule('Deny', 'json(request.body).role == "admin"')],
  'body-allow': [rule('Allow', 'string(request.body).contains("open sesame")')],
  lines: [rule('Deny', 'request.headers["x-role"] == "admin"')],
  'lines-not': [rule('Allow', 'request.headers["x-role"] != "blocked"')],
  'lines-require': [rule('Require', '!(request.headers["x-role"] in ["blocked", "guest"])')],
  'lines-in': [rule('Deny', 'request.headers["x-role"] in ["admin", "root"]')],
  'lines-start': [rule('Deny', 'request.headers["x-role"].startsWith("adm")')],
  'lines-joined': [rule('Allow', 'request.headers["x-role"].contains("user")')],
  'lines-cookie': [rule('Deny', 'request.headers.cookie == "a=1; role=admin"')],
  'lines-any': [rule('Deny', '"admin" in request.headers.raw()["x-role"]')],
  inherited: [rule('Allow', 'request.headers["constructor"] != ""', 'jwt.toString != null')],
  pattern: [rule('Allow', 'request.path.matches(request.headers["pattern"])')],
  facts: [
    rule(
      'Require',
      [
        'request.uri == "http://facts.example.com/a%20b?x=1&x=2"',
        'request.pathAndQuery == "/a%20b?x=1&x=2"',
        'request.path == "/a%20b"',
        'request.host == "facts.example.com"',
        'request.scheme == "http"',
        'request.version == "HTTP/1.1"',
        'request.method == "PUT"',
        'request.uri.query("x") == ["1", "2"]',
        'source.address == "127.0.0.1" && source.port > 1023 && source.rawPort == source.port',
        'ip(source.address).isLoopback()',
        'destination.address == "127.0.0.1" && destination.port > 0',
        'request.startTime > timestamp("2024-01-01T00:00:00Z")',
        '!has(request.endTime) && response == null && backend == null && jwt == null',
        '!has(source.subject) && !has(source.identity)',
        'env.gateway == "edge"',
        'proxy.listener.name == "http" && proxy.route.name == "facts"',
        'request.headers["Content-Type"] == "text/plain" && !("content_type" in request.headers)',
        '!has(request.headers.host)',
        'size(variables()) >= 5',
        'request.headers.cookie("b") == "2"',
        'request["body"] == b"hello" && request.bodyPrefix == b"hello"',
      ].join(' && '),
    ),
  ],
}

/** Loops in loops over `a`. */
function nested(depth: number): string {
  const list = '[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30]'
  let inner = 'a != ""'
  for (let level = 0; level < depth; level++) inner = `${list}.all(i${level}, ${inner})`
  return inner
}

const upstream = useUpstream()
const port = await freePort()
const running = useGateway(() => {
  const backendRefs = [toBackend('main')]
  const routes = Object.entries(rules).flatMap(([name, list]) => [
    httpRoute(name, { hostnames: [`${name}.example.com`], rules: [{ backendRefs }] }),
    ...list.map((spec, i) => policy(`${name}-${i}`, `HTTPRoute/${name}`, spec)),
  ])
  return {
    manifests: [
      gateway(port, {
        listeners: [
          { name: 'http', port, protocol: 'HTTP' },
          { name: 'levels', port, protocol: 'HTTP', hostname: 'levels.example.com' },
          { name: 'early', port, protocol: 'HTTP', hostname: 'early.example.com' },
        ],
      }),
      staticBackend('main', upstream.port),
      ...routes,
      httpRoute('levels', {
        parentRefs: [{ name: 'edge', sectionName: 'levels' }],
        rules: [
          { name: 'one', matches: [{ path: { value: '/one' } }], backendRefs },
          { name: 'two', backendRefs },
        ],
      }),
      policy('levels-gateway', 'Gateway/edge', rule('Deny', '"gateway" in request.headers')),
      policy('levels-a', 'Gateway/edge#levels', rule('Allow', '"listener" in request.headers')),
      policy('levels-b', 'HTTPRoute/levels', rule('Allow', '"route" in request.headers')),
      policy('levels-c', 'HTTPRoute/levels#one', rule('Allow', '"rule" in request.headers')),
      httpRoute('early', {
        parentRefs: [{ name: 'edge', sectionName: 'early' }],
        rules: [{ matches: [{ path: { value: '/served' } }], backendRefs }],
      }),
      policy('early', 'Gateway/edge#early', early('Deny', '"early" in request.headers')),
      policy('late', 'HTTPRoute/early', rule('Require', '"late" in request.headers')),
    ],
  }
})

async function status(name: string, request: TestRequest = {}): Promise<number> {
  return (await running.send(port, { host: `${name}.example.com`, ...request })).status
}
const withHeaders = (headers: TestRequest['headers']): TestRequest => ({ headers })

describe('actions [Traffic.authorization]', () => {
  it.each([
    ['open', '/', {}, 200],
    ['allow', '/', { 'x-team': 'a' }, 200],
    ['allow', '/public', {}, 200],
    ['allow', '/', {}, 403],
    ['allow', '/', { 'x-team': 'A' }, 403],
    ['deny', '/', {}, 200],
    ['deny', '/', { 'x-team': 'bad' }, 403],
    ['deny', '/admin/x', {}, 403],
    ['require', '/', { 'x-a': '1', 'x-c': '1' }, 200],
    ['require', '/', { 'x-b': '1', 'x-c': '1' }, 200],
    ['require', '/', { 'x-a': '1' }, 403],
    ['require', '/', { 'x-c': '1' }, 403],
    ['mixed', '/', { key: 'k' }, 200],
    ['mixed', '/', { key: 'other' }, 403],
    ['mixed', '/', {}, 403],
    ['mixed', '/denied', { key: 'k' }, 403],
    ['none', '/', {}, 403],
    ['nothing', '/', {}, 200],
    ['named', '/', { host: 'named.example.com.' }, 403],
    ['addressed', '/', { host: 'addressed.example.com.' }, 403],
    ['open', '/', { host: 'open.example.com.:80' }, 200],
  ])(
    '[Authorization.action] [Authorization.policy.matchExpressions] [error.4] %s %s %o: %i',
    async (name, path, headers, expected) => {
      expect(await status(name, { path, headers })).toBe(expected)
    },
  )

  it('[Authorization.action] allows by default', async () => {
    expect(await status('default')).toBe(200)
    expect(await status('default', { method: 'DELETE' })).toBe(403)
  })

  it('[error.4] answers a refused request without details, and forwards nothing', async () => {
    const before = upstream.received.length
    const { body, headers } = await running.send(port, { host: 'none.example.com' })
    expect([body, headers['content-type']]).toEqual(['authorization failed', 'text/plain'])
    expect(upstream.received).toHaveLength(before)
  })

  it('answers gRPC clients with a gRPC status', async () => {
    const response = await running.send(port, {
      host: 'none.example.com',
      method: 'POST',
      headers: { 'content-type': 'application/grpc' },
    })
    expect([response.status, response.headers['grpc-status']]).toEqual([200, '7'])
  })

  it('names the reason in the access log', async () => {
    await status('none', { path: '/why-not' })
    const isLogged = () => /http.path=\/why-not .*reason=Authorization/.test(running.stdout)
    await expect.poll(isLogged).toBe(true)
  })
})

describe('rules of all levels together [Authorization.mergeAll]', () => {
  it.each([
    ['/one', 'listener', 200],
    ['/one', 'route', 200],
    ['/one', 'rule', 200],
    ['/two', 'route', 200],
    ['/two', 'rule', 403],
    ['/one', 'nobody', 403],
  ])('%s with %s: %i', async (path, header, expected) => {
    expect(await status('levels', { path, headers: { [header]: '1' } })).toBe(expected)
  })

  it('applies a Deny rule of the Gateway even if a more specific rule allows', async () => {
    expect(await status('levels', { path: '/one', headers: { rule: '1', gateway: '1' } })).toBe(403)
    expect(await status('open', withHeaders({ gateway: '1' }))).toBe(403)
  })
})

describe('phases [Traffic.phase]', () => {
  it('[Traffic.phase=PostRouting] runs rules both before and after routing', async () => {
    const early = { path: '/served', headers: { late: '1', early: '1' } }
    expect(await status('early', early)).toBe(403)
    expect(await status('early', { path: '/served' })).toBe(403)
    expect(await status('early', { path: '/served', headers: { late: '1' } })).toBe(200)
  })

  it('refuses before routing, so that clients cannot discover routes', async () => {
    expect(await status('early', { path: '/unknown' })).toBe(404)
    expect(await status('early', { path: '/unknown', headers: { early: '1' } })).toBe(403)
  })
})

describe('rules that cannot be evaluated', () => {
  it('a missing key or null does not match', async () => {
    expect(await status('absent')).toBe(200)
    expect(await status('null')).toBe(200)
  })

  it('any other error makes a Deny rule match and an Allow rule not match', async () => {
    expect(await status('wrong')).toBe(200)
    expect(await status('wrong', withHeaders({ n: '1' }))).toBe(403)
    expect(await status('wrong-allow', withHeaders({ n: '1' }))).toBe(403)
    expect(await status('text')).toBe(403)
  })

  it('a missing key does not hide a type error', async () => {
    expect(await status('hidden')).toBe(200)
    expect(await status('hidden', withHeaders({ x: 'abc' }))).toBe(200)
    expect(await status('hidden', withHeaders({ x: ['abc', 'b'] }))).toBe(403)
  })

  it('an expression that costs too much ends early in an error', async () => {
    expect(await status('cost', withHeaders({ n: 'a' }))).toBe(403)
    expect(await status('cost-allow', withHeaders({ n: 'a' }))).toBe(403)
    expect(await status('open')).toBe(200)
  })
})

describe('authorization rules about bodies', () => {
  const post = (body: string): TestRequest => ({ method: 'POST', body })

  it('reads a body if a rule needs it, and still forwards it whole', async () => {
    expect(await status('body', post('{"role":"admin"}'))).toBe(403)
    const response = await running.send(port, {
      host: 'body.example.com',
      ...post('{"role":"user"}'),
    })
    expect(JSON.parse(response.body)).toMatchObject({ body: '{"role":"user"}' })
  })

  it('treats a missing body as empty, which is not valid JSON', async () => {
    expect(await status('body')).toBe(403)
    expect(await status('body', post('{}'))).toBe(200)
  })

  it('padding a body over the limit does not bypass a Deny rule', async () => {
    const padding = ' '.repeat(2_097_152)
    expect(await status('body', post(`${padding}{"role":"admin"}`))).toBe(403)
    expect(await status('body', post(`{"role":"user"}${padding}`))).toBe(403)
    expect(await status('body-allow', post(`open sesame${padding}`))).toBe(403)
    expect(await status('body-allow', post('open sesame'))).toBe(200)
  })

  it('forwards a body over the limit if no rule reads it', async () => {
    expect(await status('deny', post(' '.repeat(2_097_153)))).toBe(200)
  })
})

describe('headers as attackers send them', () => {
  it.each([
    ['lines', ['admin'], 403],
    ['lines', ['admin', 'user'], 403],
    ['lines', ['user', 'admin'], 403],
    ['lines', ['admin', 'admin'], 403],
    ['lines', ['', 'admin'], 403],
    ['lines', ['user', 'admin', 'other'], 403],
    ['lines', ['user', 'other'], 200],
    ['lines', Array.from({ length: 40 }, () => 'user'), 403],
    ['lines-not', ['user', 'other'], 200],
    ['lines-not', ['blocked', 'user'], 403],
    ['lines-not', ['user', 'blocked'], 403],
    ['lines-require', ['user', 'other'], 200],
    ['lines-require', ['user', 'guest'], 403],
    ['lines-in', ['user', 'root'], 403],
    ['lines-in', ['user', 'other'], 200],
    ['lines-start', ['user', 'admin'], 403],
    ['lines-start', ['user', 'other'], 200],
    ['lines-joined', ['user', 'user'], 200],
    ['lines-joined', ['user', 'other'], 403],
    ['lines-any', ['user', 'admin'], 403],
  ])(
    'a rule (%s) judges the lines %j joined and alone: %i [CVE-2026-26308]',
    async (name, lines, expected) => {
      expect(await status(name, withHeaders({ 'x-role': lines }))).toBe(expected)
    },
  )

  it('lines of cookies are one value, as backends get them', async () => {
    expect(await status('lines-cookie', withHeaders({ cookie: ['a=1', 'role=admin'] }))).toBe(403)
    expect(await status('lines-cookie', withHeaders({ cookie: ['a=1', 'role=user'] }))).toBe(200)
  })

  it('header names ignore case, and an underscore is not a hyphen', async () => {
    expect(await status('lines', withHeaders({ 'X-ROLE': 'admin' }))).toBe(403)
    expect(await status('lines', withHeaders({ x_role: 'admin' }))).toBe(200)
    expect(await status('allow', withHeaders({ x_team: 'a' }))).toBe(403)
  })

  it('inherited properties of objects are neither headers nor claims', async () => {
    expect(await status('inherited')).toBe(403)
    expect(await status('inherited', withHeaders({ constructor: 'x' }))).toBe(200)
  })

  it('a pattern that the client sends is evaluated in linear time', async () => {
    const path = `/${'a'.repeat(4000)}!`
    expect(await status('pattern', { path, headers: { pattern: '^/(a+)+$' } })).toBe(403)
    expect(await status('pattern', { path: '/aa', headers: { pattern: '^/(a+)+$' } })).toBe(200)
    expect(await status('pattern', { headers: { pattern: '(' } })).toBe(403)
  })

  it('thousands of patterns evict each other from the cache and still match', async () => {
    for (let i = 0; i < 600; i++) {
      const headers = { pattern: `^/p${i}$` }
      expect(await status('pattern', { path: `/p${i}`, headers })).toBe(200)
    }
  })
})

describe('variables of authorization rules', () => {
  it('describe the request [Authorization.policy.matchExpressions]', async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1')
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
      })
      socket.on('end', () => resolve(text))
      socket.on('error', reject)
      socket.write(
        'PUT /a%20b?x=1&x=2 HTTP/1.1\r\nHost: facts.example.com\r\nCONTENT-TYPE: text/plain\r\n' +
          'Cookie: a=1; b=2\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello',
      )
    })
    expect(answer).toContain('HTTP/1.1 200')
  })
})
