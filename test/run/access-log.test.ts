import { once } from 'node:events'
import { connect } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePorts, type RunningGateway } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const add = (name: string, expression: string) => ({ name, expression })

/** Gateway -> its access log; each has a port of its own. */
const logs = {
  plain: undefined,
  filtered: { filter: 'response.code >= 400 || "log" in request.headers' },
  broken: { filter: 'request.headers["log"]' },
  removed: { attributes: { remove: ['http.method', 'http.host', 'duration', 'no.such'] } },
  added: {
    filter: 'request.method != "HEAD"',
    attributes: {
      remove: ['src.addr'],
      add: [
        add('team', 'request.headers["x-team"]'),
        add('http.path', 'request.path'),
        add('code', 'response.code / 100'),
        add('type', 'response.headers["content-type"]'),
        add('backend', 'backend.name + " " + backend.type'),
        add('never', 'jwt.sub'),
        add('null', 'jwt'),
        add('wrong', 'request.headers["x-team"] + 1'),
        add('twice', '"first"'),
        add('twice', '"last"'),
        add(
          'asked',
          'flatten(request.uri.contains("?") ? {"q": request.uri.query("q")[0], "n": 1} : {})',
        ),
        add('list', 'request.headers.split()["accept"]'),
        add('sent', 'string(request.body)'),
        add('got', 'size(response.body)'),
        add('took', 'request.endTime >= request.startTime'),
        add('secret', 'request.headers.redacted()["authorization"]'),
      ],
    },
  },
} as const

type Name = keyof typeof logs
type Kind = 'text' | 'json'

const names = Object.keys(logs) as Name[]
const upstream = useUpstream('main', ({ path, body }, response) => {
  response.statusCode = path.startsWith('/missing') ? 404 : 200
  response.setHeader('content-type', path.startsWith('/grpc') ? 'application/grpc' : 'text/plain')
  if (path === '/grpc/trailers') {
    response.setHeader('trailer', 'grpc-status')
    response.addTrailers({ 'grpc-status': '5' })
  }
  if (path === '/grpc/head') {
    response.setHeader('grpc-status', '13')
    response.end()
    return
  }
  if (path === '/silent') return
  response.end(path === '/large' ? 'x'.repeat(100_000) : `you sent ${body}`)
})
const ports = { text: await freePorts(...names), json: await freePorts(...names) }

function useLog(kind: Kind): RunningGateway {
  const gateways = names.flatMap((name) => [
    gateway(ports[kind][name], {}, name),
    ...(logs[name] === undefined
      ? []
      : [policy(name, `Gateway/${name}`, { frontend: { accessLog: logs[name] } })]),
  ])
  const younger = { creationTimestamp: '2099-01-01T00:00:00Z' }
  return useGateway(() => ({
    manifests: [
      ...gateways,
      // The upstream speaks HTTP/1.1 only, which gRPC would not be sent by of itself.
      staticBackend('main', upstream.port, { http: { version: 'HTTP1' } }),
      httpRoute('app', {
        parentRefs: names.map((name) => ({ name })),
        rules: [
          { backendRefs: [toBackend('main')] },
          { matches: [{ path: { value: '/refused' } }], backendRefs: [] },
        ],
      }),
      policy(
        'younger',
        'Gateway/removed',
        { frontend: { accessLog: { filter: 'false' } } },
        younger,
      ),
    ],
    args: ['--access-log', kind],
  }))
}

const running = { text: useLog('text'), json: useLog('json') }

/** Sends requests one after the other; resolves with the lines that were written up to the last one. */
async function linesOf(
  kind: Kind,
  name: Name,
  ...requests: readonly TestRequest[]
): Promise<string[]> {
  const gateway = running[kind]
  const from = gateway.stdout.length
  for (const request of requests) await gateway.send(ports[kind][name], request)
  marks++
  await gateway.send(ports[kind].plain, { path: `/mark-${marks}` })
  await waitFor('the mark', () => gateway.stdout.slice(from).includes(`/mark-${marks}`))
  return gateway.stdout
    .slice(from)
    .split('\n')
    .filter((line) => line !== '' && !line.includes('/mark-'))
}
let marks = 0

const jsonOf = async (name: Name, request: TestRequest) => {
  const [line = '{}'] = await linesOf('json', name, request)
  return JSON.parse(line) as Record<string, unknown>
}

describe('the access log without a policy', () => {
  it('has a line for each request', async () => {
    const [line, ...rest] = await linesOf('text', 'plain', { path: '/a?b' })
    expect(rest).toEqual([])
    expect(line).toMatch(
      /\tinfo\trequest gateway=default\/plain listener=http route=default\/app endpoint=\S+ src\.addr=127\.0\.0\.1:\d+ http\.method=GET http\.host=\S+ http\.path=\/a\?b http\.version=HTTP\/1\.1 http\.status=200 protocol=http duration=\d+ms$/,
    )
  })
})

it('the access log names the client address of a cancelled request', async () => {
  const socket = connectSocket(ports.text.plain, '127.0.0.1')
  await once(socket, 'connect')
  const from = socket.localPort ?? 0
  socket.write('GET /silent HTTP/1.1\r\nHost: x\r\n\r\n')
  await waitFor('the request', () => upstream.received.some(({ path }) => path === '/silent'))
  socket.destroy()
  const line = await waitFor('the line', () =>
    running.text.stdout.split('\n').find((text) => text.includes('http.path=/silent')),
  )
  expect(line).toContain(` src.addr=127.0.0.1:${from} `)
})

describe('gRPC in the access log', () => {
  const call = (path: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const session = connect(`http://127.0.0.1:${ports.json.plain}`)
      session.once('error', reject)
      const headers = { 'content-type': 'application/grpc', te: 'trailers' }
      const stream = session.request({ ':method': 'POST', ':path': path, ...headers })
      stream.resume()
      stream.once('error', reject)
      stream.once('end', () => session.close(resolve))
      stream.end()
    })

  it.each([
    ['in trailers', '/grpc/trailers', 5],
    ['in a head without a body', '/grpc/head', 13],
    ['of a response of the gateway', '/refused', 14],
  ])('logs the gRPC status, %s', async (_, path, expected) => {
    await call(path)
    const line = await waitFor('the line', () =>
      running.json.stdout.split('\n').find((text) => text.includes(`"http.path":"${path}"`)),
    )
    expect(JSON.parse(line)).toMatchObject({ 'http.version': 'HTTP/2', 'grpc.status': expected })
  })
})

describe('[AccessLog.filter] a filter', () => {
  it('writes a line only if the filter is true', async () => {
    const lines = await linesOf(
      'text',
      'filtered',
      { path: '/ok' },
      { path: '/missing' },
      { path: '/asked', headers: { log: '1' } },
    )
    expect(lines.map((line) => /http\.path=(\S+)/.exec(line)?.[1])).toEqual(['/missing', '/asked'])
  })

  it('writes no line if the filter is not a bool or cannot be evaluated', async () => {
    expect(await linesOf('text', 'broken', {}, { headers: { log: 'true' } })).toEqual([])
  })
})

describe('[AccessLog.attributes] attributes', () => {
  it('[LogTracingAttributes.remove] leaves out attributes that the policy removes', async () => {
    const [line = ''] = await linesOf('text', 'removed', { path: '/r' })
    expect(line).toContain('http.path=/r')
    expect(line).not.toMatch(/http\.method|http\.host|duration/)
    const json = await jsonOf('removed', { path: '/r' })
    expect(json).toMatchObject({ 'http.path': '/r', 'http.status': 200 })
    expect(json).not.toHaveProperty('http.method')
  })

  it('[LogTracingAttributes.add] [AttributeAdd.name] [AttributeAdd.expression] appends the added attributes to the line', async () => {
    const [line = ''] = await linesOf('text', 'added', {
      method: 'POST',
      path: '/p?q=x%20y',
      headers: { 'x-team': 'a b', accept: 'text/a, text/b', authorization: 'Bearer secret-token' },
      body: 'hello',
    })
    expect(line.slice(line.indexOf(' duration='))).toMatch(
      /^ duration=\d+ms team="a b" http\.path=\/p code=2 type=text\/plain backend="default\/main static" twice=last asked\.q="x y" asked\.n=1 list="\[\\"text\/a\\",\\"text\/b\\"\]" sent=hello got=14 took=true secret=<redacted>$/,
    )
    expect(line).not.toContain('src.addr')
    expect(line).not.toContain('http.path=/p?q')
    expect(line).not.toContain('secret-token')
  })

  it('keeps the types of attributes in JSON', async () => {
    const json = await jsonOf('added', { path: '/j', headers: { accept: 'a' } })
    expect(json).toMatchObject({ 'http.path': '/j', code: 2, list: ['a'], took: true, got: 9 })
    for (const name of ['team', 'never', 'null', 'wrong', 'asked.q', 'src.addr']) {
      expect(json).not.toHaveProperty([name])
    }
  })

  it('[LogTracingAttributes.add] leaves out an attribute whose expression fails', async () => {
    const [line = ''] = await linesOf('text', 'added', { path: '/f' })
    expect(line).not.toMatch(/ (team|never|null|wrong|list)=/)
    expect(line).toContain(' twice=last')
  })

  it('reads bodies for attributes while they pass through', async () => {
    const json = await jsonOf('added', { method: 'PUT', path: '/large', body: 'y'.repeat(70_000) })
    expect([String(json.sent).length, json.got]).toEqual([70_000, 100_000])
  })

  it('combines added attributes with a filter', async () => {
    expect(await linesOf('text', 'added', { method: 'HEAD' })).toEqual([])
  })

  it('escapes line breaks in values that a client sent', async () => {
    const [line = '', ...rest] = await linesOf('text', 'added', {
      headers: { 'x-team': 'a" evil="1' },
    })
    expect(rest).toEqual([])
    expect(line).toContain(' team="a\\" evil=\\"1" ')
  })
})
