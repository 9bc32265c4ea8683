import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, freePorts } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  streamRoute,
  toBackend,
} from '../support/manifests.ts'
import { echo, startTcpUpstream } from '../support/stream-upstream.ts'
import type { ReceivedRequest } from '../support/upstream.ts'

const ready = { ready: true, serving: true, terminating: false }
/** What the EndpointSlice controller writes for a Pod that is being deleted. */
const draining = { ready: false, serving: true, terminating: true }
const stopped = { ready: false, serving: false, terminating: true }
const starting = { ready: false, serving: false, terminating: false }

const service = (name: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { ports: [{ name: 'p', port: 80 }], ...spec },
})

/** Slices with one endpoint each, since upstreams of the test share an address. */
const slices = (of: string, endpoints: readonly (readonly [to: number, conditions: object])[]) =>
  endpoints.map(([port, conditions], index) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${of}-${index}`, labels: { 'kubernetes.io/service-name': of } },
    addressType: 'IPv4',
    ports: [{ name: 'p', port }],
    endpoints: [{ addresses: ['127.0.0.1'], conditions }],
  }))

const routed = (name: string) =>
  httpRoute(name, {
    hostnames: [`${name}.example.com`],
    rules: [{ backendRefs: [{ name, port: 80 }] }],
  })

const ports = await freePorts('http', 'tcp')
const up = useUpstream('up')
const other = useUpstream('other')
const judge = useUpstream('judge', (_, response) => response.end())
const bytes = useFixture(() => startTcpUpstream(echo('bytes')))
const listeners = [
  { name: 'http', port: ports.http, protocol: 'HTTP' },
  { name: 'tcp', port: ports.tcp, protocol: 'TCP' },
]
const running = useGateway(async () => {
  const closed = await freePort()
  const both = [
    [other.port, draining],
    [up.port, ready],
  ] as const
  return {
    manifests: {
      'both.yaml': manifest(...slices('both', both)),
      'all.yaml': manifest(
        gateway(0, { listeners }),
        service('both'),
        service('alone'),
        ...slices('alone', [
          [closed, starting],
          [closed, stopped],
          [up.port, draining],
        ]),
        service('headless', { clusterIP: 'None' }),
        ...slices('headless', [[up.port, { ready: false, terminating: true, serving: true }]]),
        service('stopped'),
        ...slices('stopped', [[up.port, stopped]]),
        service('unsaid'),
        ...slices('unsaid', [[up.port, { ready: false, terminating: true }]]),
        service('starting', { publishNotReadyAddresses: true }),
        ...slices('starting', [
          [other.port, draining],
          [up.port, starting],
        ]),
        service('bytes'),
        ...slices('bytes', [[bytes.port, draining]]),
        service('judge'),
        ...slices('judge', [[judge.port, draining]]),
        ...['both', 'alone', 'headless', 'stopped', 'unsaid', 'starting'].map(routed),
        streamRoute('TCPRoute', 'bytes', 'tcp', [{ name: 'bytes', port: 80 }]),
        staticBackend('judged', up.port),
        httpRoute('judged', {
          hostnames: ['judged.example.com'],
          rules: [{ backendRefs: [toBackend('judged')] }],
        }),
        policy('judge', 'HTTPRoute/judged', {
          traffic: { extAuth: { backendRef: { name: 'judge', port: 80 }, http: {} } },
        }),
      ),
    },
  }
})

const ask = (name: string) => running.send(ports.http, { host: `${name}.example.com` })

async function reached(name: string): Promise<Set<string>> {
  const names = new Set<string>()
  for (let round = 0; round < 8; round++) {
    const { status, body } = await ask(name)
    expect(status).toBe(200)
    names.add((JSON.parse(body) as ReceivedRequest).upstream)
  }
  return names
}

/** What a connection to the TCP listener answers first. */
const firstBytes = () =>
  new Promise<string>((resolve, reject) => {
    const socket = connect(ports.tcp, '127.0.0.1', () => socket.write('hello'))
    socket.once('data', (chunk) => {
      resolve(chunk.toString())
      socket.destroy()
    })
    socket.once('close', () => reject(new Error('closed without an answer')))
  })

describe('a terminating endpoint that still serves', () => {
  it.each(['alone', 'headless'])(
    'gets the requests of a Service without ready endpoints (%s)',
    async (name) => {
      expect(await reached(name)).toEqual(new Set(['up']))
    },
  )

  it('gets no request while the Service has another endpoint that may be used', async () => {
    expect(await reached('both')).toEqual(new Set(['up']))
    expect(await reached('starting')).toEqual(new Set(['up']))
  })

  it.each(['stopped', 'unsaid'])(
    'is not assumed of one whose conditions do not say so (%s)',
    async (name) => {
      expect((await ask(name)).status).toBe(503)
    },
  )

  it('gets connections of a TCPRoute', async () => {
    expect(await firstBytes()).toContain('bytes')
  })

  it('is asked as an authorization service', async () => {
    expect((await ask('judged')).status).toBe(200)
    expect(judge.received.length).toBeGreaterThan(0)
  })

  it('takes over when the last ready endpoint terminates', async () => {
    running.write('both.yaml', manifest(...slices('both', [[other.port, draining]])))
    const host = 'both.example.com'
    const answer = await running.sendUntil(ports.http, { host }, ({ body }) =>
      body.includes('"upstream":"other"'),
    )
    expect(answer.status).toBe(200)
  })
})
