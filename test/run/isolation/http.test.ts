import { describe, expect, it } from 'vitest'
import { startEndpointPicker } from '../../support/endpoint-picker.ts'
import { startExtAuthServer } from '../../support/ext-auth-server.ts'
import {
  type Processor,
  type ProcessorStream,
  passAll,
  startExtProcServer,
} from '../../support/ext-proc-server.ts'
import { useAuthority, useFixture, useGateway } from '../../support/fixture.ts'
import { freePort } from '../../support/gateway.ts'
import {
  configMap,
  gateway,
  hostOf,
  httpRoute,
  inferencePool,
  pod,
  policy,
  service,
  staticBackend,
  toBackend,
  toPool,
} from '../../support/manifests.ts'
import { startRateLimitServer } from '../../support/rate-limit-server.ts'
import { TaggedClients } from '../../support/tagged-client.ts'
import { upgradeAll } from '../../support/tagged-upgrades.ts'
import { startTaggedUpstream, tagsIn } from '../../support/tagged-upstream.ts'

const delays = new WeakMap<ProcessorStream, number>()
let streams = 0
/** Answers late, and later on some streams, so that connections serve others meanwhile. */
const slowly: Processor = (message, stream) => {
  const delay = delays.get(stream) ?? streams++ % 7
  delays.set(stream, delay)
  setTimeout(() => passAll(message, stream), delay)
}

const headsAlone: Processor = (message, stream) => {
  if (message.request.case !== 'requestHeaders') {
    slowly(message, stream)
    return
  }
  const modeOverride = {
    requestHeaderMode: 1,
    responseHeaderMode: 1,
    requestBodyMode: 0,
    responseBodyMode: 0,
    requestTrailerMode: 2,
    responseTrailerMode: 2,
  }
  stream.send({ response: { case: 'requestHeaders', value: {} }, modeOverride })
}

const authority = useAuthority()
const plain = useFixture(() => startTaggedUpstream())
const secure = useFixture(() => startTaggedUpstream(authority.issue(['tagged.test'])))
/** Gets copies of requests. */
const copy = useFixture(() => startTaggedUpstream())
const processor = useFixture(() => startExtProcServer(slowly))
const headProcessor = useFixture(() => startExtProcServer(headsAlone))
const picker = useFixture(() =>
  startEndpointPicker(() => ({ endpoints: `127.0.0.1:${plain.port}` })),
)
const judge = useFixture(startExtAuthServer)
const limiter = useFixture(startRateLimitServer)
const clients = useFixture(() => new TaggedClients())

const expression = (name: string, value: string) => ({ name, value })

/** The policies of a route by name; `processor` and so on are static backends. */
const policies: Readonly<Record<string, object>> = {
  nothing: {},
  extproc: { extProc: { backendRef: toBackend('processor') } },
  extprocheads: { extProc: { backendRef: toBackend('head-processor') } },
  extauth: { extAuth: { backendRef: toBackend('judge'), grpc: {} } },
  limited: {
    rateLimit: {
      local: [{ requests: 1_000_000, unit: 'Seconds' }],
      global: {
        backendRef: toBackend('limiter'),
        domain: 'd',
        descriptors: [{ entries: [{ name: 'tag', expression: 'request.headers["x-tag"]' }] }],
      },
    },
  },
  transformed: {
    transformation: {
      response: { set: [expression('x-set', 'request.headers["x-tag"]')] },
      request: { set: [expression('x-copy', 'request.headers["x-tag"]')] },
    },
  },
  everything: {
    extProc: { backendRef: toBackend('processor') },
    extAuth: { backendRef: toBackend('judge'), grpc: {} },
    transformation: { response: { set: [expression('x-set', 'response.headers["x-tag"]')] } },
    retry: { attempts: 2, codes: [503] },
    timeouts: { request: '30s' },
  },
  mirrored: { extProc: { backendRef: toBackend('processor') } },
}
/** Filters of routes by the name of their policy. */
const filters: Readonly<Record<string, readonly object[]>> = {
  mirrored: ['http1', 'http2'].map((version) => ({
    type: 'RequestMirror',
    requestMirror: { backendRef: toBackend(`copy-${version}`) },
  })),
}
/** Sets of policies in front of connections that change their protocol. */
const upgradable = ['nothing', 'extprocheads', 'extauth', 'transformed'] as const
const backends = ['http1', 'http2', 'tls1', 'tls2', 'pool'] as const

const toNamed = (backend: string) => (backend === 'pool' ? toPool('pool') : toBackend(backend))

const port = await freePort()
/** The listener whose access log contains parts of responses, which changes how they are kept. */
const logged = await freePort()
const running = useGateway(() => ({
  args: ['--workers', '1'],
  manifests: [
    gateway(port, {
      listeners: [
        { name: 'http', port, protocol: 'HTTP' },
        { name: 'logged', port: logged, protocol: 'HTTP' },
      ],
    }),
    policy('log', 'Gateway/edge#logged', {
      frontend: {
        accessLog: {
          attributes: {
            add: [
              { name: 'asked', expression: 'request.headers["x-tag"]' },
              { name: 'answered', expression: 'response.headers["x-tag"]' },
              { name: 'got', expression: 'string(response.body).substring(0, 5)' },
            ],
          },
        },
      },
    }),
    configMap('authority', { 'ca.crt': authority.certificate }),
    staticBackend('http1', plain.port, { http: { version: 'HTTP1' } }),
    staticBackend('http2', plain.port, { http: { version: 'HTTP2' } }),
    staticBackend('copy-http1', copy.port, { http: { version: 'HTTP1' } }),
    staticBackend('copy-http2', copy.port, { http: { version: 'HTTP2' } }),
    ...(['HTTP1', 'HTTP2'] as const).map((version, at) =>
      staticBackend(`tls${at + 1}`, secure.port, {
        http: { version },
        tls: { sni: 'tagged.test', caCertificateRefs: [{ name: 'authority' }] },
      }),
    ),
    ...service('picker', [picker.port], { appProtocol: 'kubernetes.io/h2c' }),
    pod('member', 'tagged', '127.0.0.1'),
    inferencePool('pool', 'tagged', [plain.port], { name: 'picker' }),
    staticBackend('processor', processor.port),
    staticBackend('head-processor', headProcessor.port),
    staticBackend('judge', judge.port),
    staticBackend('limiter', limiter.port),
    ...Object.entries(policies).flatMap(([name, traffic]) =>
      backends.flatMap((backend) => [
        httpRoute(`${name}-${backend}`, {
          hostnames: [hostOf(`${name}-${backend}`)],
          rules: [{ filters: filters[name] ?? [], backendRefs: [toNamed(backend)] }],
        }),
        ...(Object.keys(traffic).length === 0
          ? []
          : [policy(`${name}-${backend}`, `HTTPRoute/${name}-${backend}`, { traffic })]),
      ]),
    ),
  ],
}))

const routes = Object.keys(policies).flatMap((name) =>
  backends.map((backend) => [name, backend] as const),
)

describe('concurrent clients', () => {
  it.each(routes)(
    'receive only bytes of their own with %s in front of %s',
    async (name, backend) => {
      const wrong = await clients.run(port, hostOf(`${name}-${backend}`), 240, 24)
      expect(wrong.slice(0, 5)).toEqual([])
    },
  )

  it.each([
    ['', port],
    [' and parts of responses are logged', logged],
  ])('receive only bytes of their own if all routes are used at once%s', async (_, at) => {
    const all = routes.map(([name, backend]) =>
      clients.run(at, hostOf(`${name}-${backend}`), 80, 6),
    )
    expect((await Promise.all(all)).flat().slice(0, 5)).toEqual([])
  })

  it.each(['http1', 'tls1'].flatMap((backend) => upgradable.map((name) => [name, backend])))(
    'receive only bytes of their own after an upgrade with %s in front of %s',
    async (name, backend) => {
      const wrong = await upgradeAll(port, hostOf(`${name}-${backend}`), 120, 24)
      expect(wrong).toEqual([])
    },
  )

  it('reach upstreams with bytes of their own only', () => {
    expect(copy.count).toBeGreaterThan(100)
    expect([...plain.mixed, ...secure.mixed, ...copy.mixed].slice(0, 5)).toEqual([])
  })

  it('are logged with values of their own only', () => {
    const lines = running.stdout.split('\n').filter((line) => line.includes('tag-'))
    expect(lines.length).toBeGreaterThan(5_000)
    expect(lines.filter((line) => tagsIn(line).length !== 1).slice(0, 5)).toEqual([])
  })
})
