import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
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
  'direct-body': { response: { body: '"[" + string(response.body) + "]"' } },
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

export const upstream = useUpstream('main', answer)
const port = await freePort()
export const running = useGateway(() => {
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

export const send = (name: string, request: TestRequest = {}): Promise<TestResponse> =>
  running.send(port, { host: `${name}.example.com`, ...request })
export const received = async (name: string, request: TestRequest = {}) =>
  JSON.parse((await send(name, request)).body) as ReceivedRequest
