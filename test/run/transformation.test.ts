import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest, TestResponse } from '../support/http-client.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import type { ReceivedRequest } from '../support/upstream.ts'

type Half = Readonly<Record<string, unknown>>
const header = (name: string, value: string) => ({ name, value })

/** Name of a route -> its transformation. Each route has its own host, `<name>.example.com`. */
const transformations: Readonly<Record<string, { request?: Half; response?: Half }>> = {
  set: {
    request: {
      set: [
        header('x-method', 'request.method + " " + request.path'),
        header('X-Seen', '"before: " + request.headers["x-seen"]'),
        header('x-second', 'request.headers["x-method"] + "!"'),
      ],
    },
  },
  add: {
    request: {
      add: [header('x-list', '"mine"')],
      set: [header('x-count', 'string(size(request.headers.raw()["x-list"]))')],
      remove: ['x-gone', 'X-Also-Gone'],
    },
  },
  order: {
    request: {
      add: [header('x-a', '"added"')],
      set: [header('x-a', 'request.headers.join()["x-a"] + ", set"')],
      remove: ['x-b'],
      body: 'request.headers["x-a"] + " " + string("x-b" in request.headers)',
    },
  },
  failing: {
    request: {
      set: [
        header('x-user', 'jwt.sub'),
        header('x-number', '1 + 1'),
        header('x-line', 'url.decode(request.headers["evil"])'),
        header('x-null', 'jwt'),
      ],
      add: [header('x-added', 'jwt.sub')],
    },
  },
  texts: {
    request: {
      set: [header('x-umlaut', 'request.headers["x-umlaut"] + "ü"'), header('x-bytes', 'b"raw"')],
    },
  },
  pseudo: {
    request: {
      set: [
        header(':method', '"PATCH"'),
        header(':path', '"/new" + request.path + "?was=" + request.uri.query("q")[0]'),
        header(':authority', '"other.example.com"'),
      ],
    },
  },
  'pseudo-bad': {
    request: {
      set: [
        header(':method', '"NO SUCH"'),
        header(':path', 'request.headers["path"]'),
        header(':authority', 'jwt.host'),
        header('host', '"bad host"'),
        header(':scheme', '"ftp"'),
      ],
    },
  },
  host: { request: { set: [header('Host', '"named.example.com"')] } },
  engine: {
    request: {
      set: [
        header('content-length', '"3"'),
        header('transfer-encoding', '"chunked"'),
        header('connection', '"x-kept"'),
      ],
      remove: ['content-length'],
    },
  },
  body: { request: { body: '{"model": json(request.body).model, "n": [1, 2.5, true, null]}' } },
  'body-text': { request: { body: '"text of " + request.headers["x-name"]' } },
  'body-fails': { request: { body: 'json(request.body).missing' } },
  'response-head': {
    response: {
      set: [
        header('x-answer', 'string(response.code) + " to " + request.method'),
        header(':status', 'response.code == 200 ? 203 : response.code'),
        header('x-again', 'response.headers["x-answer"]'),
        header('host', '"of a response"'),
      ],
      add: [header('set-cookie', '"mine=1"')],
      remove: ['x-internal'],
    },
  },
  'response-body': {
    response: {
      set: [header('x-length', 'string(size(response.body))')],
      body: '"<" + json(response.body).body + ">"',
    },
  },
  'response-status': {
    response: { set: [header(':status', 'int(request.headers["wanted"])')] },
  },
  both: {
    request: { body: '"new " + string(request.body)' },
    response: { set: [header('x-sent', 'string(request.body)')] },
  },
  plain: {
    request: { body: '"plain"' },
    response: { set: [header('digest', '"new"')], body: '"plain"' },
  },
  late: { response: { set: [header('x-sent', 'string(request.body)')] } },
  large: { response: { set: [header('x-large', 'string(size(response.body))')] } },
  streamed: { response: { set: [header('x-code', 'string(response.code)')] } },
  direct: {
    response: {
      set: [header('x-code', 'string(response.code)')],
      body: '"[" + string(response.body) + "]"',
    },
  },
  refused: { response: { set: [header('x-code', 'string(response.code)')] } },
  useless: {
    request: { set: [header(':status', '200'), header('x-works', '"yes"')], remove: [':path'] },
    response: { set: [header(':path', '"/"')] },
  },
  empty: { response: { set: [header('x-code', 'string(response.code)')], body: '"ignored"' } },
}

function answer(received: ReceivedRequest, response: ServerResponse): void {
  response.setHeader('x-internal', 'secret')
  response.setHeader('set-cookie', ['theirs=1'])
  response.setHeader('content-type', 'application/json')
  if (received.path === '/204') response.statusCode = 204
  const coded = { 'content-encoding': 'gzip', 'content-md5': 'b2xk', digest: 'old' }
  if (received.path === '/coded') response.writeHead(200, coded).end(gzipSync('old'))
  else if (received.path === '/large') response.end('x'.repeat(3_000_000))
  else if (received.path === '/204') response.end()
  else response.end(JSON.stringify(received))
}

const upstream = useUpstream('main', answer)
const port = await freePort()
const running = useGateway(() => {
  const backendRefs = [toBackend('main')]
  const routes = Object.entries(transformations).flatMap(([name, transformation]) => [
    httpRoute(name, { hostnames: [`${name}.example.com`], rules: [{ backendRefs }] }),
    policy(name, `HTTPRoute/${name}`, {
      traffic: {
        transformation,
        ...(name === 'direct' && { directResponse: { status: 418, body: 'short' } }),
        ...(name === 'refused' && {
          authorization: { policy: { matchExpressions: ['"key" in request.headers'] } },
        }),
      },
    }),
  ])
  return {
    manifests: [
      gateway(port, {
        listeners: [
          { name: 'http', port, protocol: 'HTTP' },
          { name: 'early', port, protocol: 'HTTP', hostname: 'early.example.com' },
        ],
      }),
      staticBackend('main', upstream.port),
      ...routes,
      httpRoute('early', {
        parentRefs: [{ name: 'edge', sectionName: 'early' }],
        rules: [
          {
            matches: [{ headers: [{ name: 'x-version', value: '2' }] }],
            filters: [headerFilter('two')],
            backendRefs,
          },
          {
            matches: [{ path: { value: '/moved' } }],
            filters: [headerFilter('moved')],
            backendRefs,
          },
          { filters: [headerFilter('other')], backendRefs },
        ],
      }),
      policy('early', 'Gateway/edge#early', {
        traffic: {
          phase: 'PreRouting',
          transformation: {
            request: {
              set: [
                header('x-version', 'request.path.startsWith("/v2") ? "2" : "1"'),
                header(':path', 'request.path == "/old" ? "/moved" : request.path'),
              ],
            },
            response: { set: [header('x-early', '"yes"')] },
          },
        },
      }),
    ],
  }
})

const headerFilter = (value: string) => ({
  type: 'ResponseHeaderModifier',
  responseHeaderModifier: { set: [{ name: 'x-rule', value }] },
})

const send = (name: string, request: TestRequest = {}): Promise<TestResponse> =>
  running.send(port, { host: `${name}.example.com`, ...request })
const received = async (name: string, request: TestRequest = {}) =>
  JSON.parse((await send(name, request)).body) as ReceivedRequest

describe('headers of requests [Traffic.transformation]', () => {
  it('[Transform.set] [HeaderTransformation.value] replaces values, each seeing the one before', async () => {
    const { headers } = await received('set', {
      path: '/p',
      headers: { 'x-seen': 'a', 'x-method': 'forged' },
    })
    expect(headers).toMatchObject({
      'x-method': 'GET /p',
      'x-seen': 'before: a',
      'x-second': 'GET /p!',
    })
  })

  it('[Transform.add] appends to the values that are there; [Transform.remove] takes all of a name', async () => {
    const { headers } = await received('add', {
      headers: { 'x-list': ['a', 'b'], 'X-Gone': ['1', '2'], 'x-also-gone': '3', 'x-kept': '4' },
    })
    expect(headers).toMatchObject({ 'x-list': 'a, b, mine', 'x-count': '3', 'x-kept': '4' })
    expect(headers).not.toHaveProperty('x-gone')
    expect(headers).not.toHaveProperty('x-also-gone')
  })

  it('[Transform.add] makes a header where there is none', async () => {
    expect((await received('add')).headers).toMatchObject({ 'x-list': 'mine' })
  })

  it('adds, sets, removes, then writes the body', async () => {
    const { headers, body } = await received('order', { headers: { 'x-a': 'own', 'x-b': '1' } })
    expect(headers['x-a']).toBe('own, added, set')
    expect(body).toBe('own, added, set false')
  })

  it('removes a header whose expression fails, so that no client can send it instead', async () => {
    const { headers } = await received('failing', {
      headers: {
        'x-user': 'admin',
        'x-number': '7',
        'x-line': 'old',
        'x-null': 'old',
        'x-added': 'old',
        evil: 'a%0d%0ax-smuggled:%20yes',
      },
    })
    for (const name of ['x-user', 'x-number', 'x-line', 'x-null', 'x-added', 'x-smuggled']) {
      expect(headers).not.toHaveProperty(name)
    }
  })

  it('writes texts as UTF-8 and bytes as they are', async () => {
    const { headers } = await received('texts', {
      headers: { 'x-umlaut': Buffer.from('ä').toString('latin1') },
    })
    const bytes = Buffer.from(String(headers['x-umlaut']), 'latin1')
    expect(bytes.toString('utf8')).toBe('äü')
    expect(headers['x-bytes']).toBe('raw')
  })

  it('leaves the framing of messages to the engine', async () => {
    const { headers, body } = await received('engine', { method: 'POST', body: 'twelve bytes' })
    expect(body).toBe('twelve bytes')
    expect(headers['content-length'] ?? headers['transfer-encoding']).toBeDefined()
  })
})

describe('pseudo-headers [HeaderTransformation.name]', () => {
  it('change method, path with query, and authority', async () => {
    const { method, path, headers } = await received('pseudo', { path: '/a?q=1&r=2' })
    expect([method, path, headers.host]).toEqual(['PATCH', '/new/a?was=1', 'other.example.com'])
  })

  it('stay as they are where the new value cannot be one', async () => {
    const { method, path, headers } = await received('pseudo-bad', {
      path: '/a?b',
      headers: { path: 'no-slash?c' },
    })
    expect([method, path, headers.host]).toEqual(['GET', '/a?b', 'pseudo-bad.example.com'])
  })

  it('the header Host is the authority', async () => {
    expect((await received('host')).headers.host).toBe('named.example.com')
  })

  it('that a half does not have are ignored with a message, and the rest works', async () => {
    expect((await received('useless', { path: '/x' })).headers['x-works']).toBe('yes')
    const condition = await running.condition('GatewayPolicy', 'useless', 'Accepted', 'True')
    expect(condition.reason).toBe('PartiallyValid')
    for (const text of [
      'spec.traffic.transformation.request.set[0].name: a request has no :status',
      'spec.traffic.transformation.request.remove[0]: :path cannot be removed',
      'spec.traffic.transformation.response.set[0].name: a response has no :path',
    ]) {
      expect(condition.message).toContain(text)
    }
  })
})

describe('bodies of requests [Transform.body]', () => {
  it('are written as JSON', async () => {
    const { body, headers } = await received('body', { method: 'POST', body: '{"model":"m"}' })
    expect(JSON.parse(body)).toEqual({ model: 'm', n: [1, 2.5, true, null] })
    expect(headers['content-length']).toBe(String(body.length))
  })

  it('are written as they are where they are text, without one before too', async () => {
    const { body, headers } = await received('body-text', {
      headers: { 'x-name': 'a' },
    })
    expect([body, headers['content-length']]).toEqual(['text of a', '9'])
  })

  it('are empty where the expression fails', async () => {
    const { body, headers } = await received('body-fails', { method: 'POST', body: '{"a":1}' })
    expect([body, headers['content-length']]).toEqual(['', '0'])
  })

  it('are empty where the old one is over the limit', async () => {
    const body = `{"missing":1,"pad":"${'x'.repeat(2_097_152)}"}`
    expect((await received('body-fails', { method: 'POST', body })).body).toBe('')
  })
})

describe('responses', () => {
  it('get other headers and another status', async () => {
    const { status, headers } = await send('response-head')
    expect([status, headers['x-answer'], headers['x-again'], headers.host]).toEqual([
      203,
      '200 to GET',
      '200 to GET',
      'of a response',
    ])
    expect(headers['set-cookie']).toEqual(['theirs=1', 'mine=1'])
    expect(headers).not.toHaveProperty('x-internal')
  })

  it('get another body', async () => {
    const { body, headers } = await send('response-body', { method: 'POST', body: 'hello' })
    expect(body).toBe('<hello>')
    expect(headers['content-length']).toBe('7')
    expect(Number(headers['x-length'])).toBeGreaterThan(100)
  })

  it('lose the coding and the digests of the body that they had', async () => {
    const coded = { 'content-encoding': 'gzip', 'content-digest': 'sha-256=:b2xk:' }
    const request = { path: '/coded', method: 'POST', body: 'x', headers: coded }
    const { body, headers } = await send('plain', request)
    expect(body).toBe('plain')
    expect(headers).toMatchObject({ digest: 'new' })
    expect(headers).not.toHaveProperty('content-encoding')
    expect(headers).not.toHaveProperty('content-md5')
    const received = upstream.received.at(-1)
    expect(received?.body.toString()).toBe('plain')
    expect(received?.headers).not.toHaveProperty('content-encoding')
    expect(received?.headers).not.toHaveProperty('content-digest')
  })

  it.each([
    ['404', 404],
    ['101', 200],
    ['700', 200],
    ['abc', 200],
  ])('status %s gives %i', async (wanted, expected) => {
    expect((await send('response-status', { headers: { wanted } })).status).toBe(expected)
  })

  it('see the body of the request, as it was sent on', async () => {
    const { body, headers } = await send('both', { method: 'POST', body: 'one' })
    expect((JSON.parse(body) as ReceivedRequest).body).toBe('new one')
    expect(headers['x-sent']).toBe('new one')
    const late = await send('late', { method: 'POST', body: 'two' })
    expect(late.headers['x-sent']).toBe('two')
    expect((JSON.parse(late.body) as ReceivedRequest).body).toBe('two')
  })

  it('over the limit lose the header that needs their body, and arrive whole', async () => {
    const { body, headers } = await send('large', { path: '/large', headers: { 'x-large': '1' } })
    expect(headers).not.toHaveProperty('x-large')
    expect(body).toHaveLength(3_000_000)
  })

  it('are not read into memory where no expression asks', async () => {
    const { body, headers } = await send('streamed', { path: '/large' })
    expect([headers['x-code'], body.length]).toEqual(['200', 3_000_000])
  })

  it('of the gateway are changed too, where the policy had been reached', async () => {
    const direct = await send('direct')
    expect([direct.status, direct.headers['x-code'], direct.body]).toEqual([418, '418', '[short]'])
    const refused = await send('refused')
    expect(refused.status).toBe(403)
    expect(refused.headers).not.toHaveProperty('x-code')
  })

  it('without a body get none', async () => {
    const none = await send('empty', { path: '/204' })
    expect([none.status, none.headers['x-code'], none.body]).toEqual([204, '204', ''])
    const head = await send('empty', { method: 'HEAD' })
    expect([head.status, head.headers['x-code'], head.body]).toEqual([200, '200', ''])
  })
})

describe('before routing [Traffic.phase] [Traffic.phase=PreRouting]', () => {
  it.each([
    ['/v2/x', 'two'],
    ['/old', 'moved'],
    ['/x', 'other'],
  ])('%s takes the rule %s', async (path, rule) => {
    const { headers } = await send('early', { path, headers: { 'x-version': '2' } })
    expect([headers['x-rule'], headers['x-early']]).toEqual([rule, 'yes'])
  })
})
