import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Collected } from '../support/collected-spans.ts'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, freePorts } from '../support/gateway.ts'
import { startGrpcCollector } from '../support/grpc-collector.ts'
import type { TestRequest } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

async function startHttpCollector(collected: Collected) {
  let answer = 200
  let refused = 0
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      collected.contentTypes.add(
        `${request.method} ${request.url} ${request.headers['content-type']}`,
      )
      if (answer === 200) collected.take(Buffer.concat(chunks))
      else refused++
      response.statusCode = answer
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    refused: () => refused,
    answerWith: (code: number) => {
      answer = code
    },
    close: () => server.closeAllConnections(),
  }
}

const sampled = '"sample" in request.headers'

/** Gateway -> its tracing; each has a port of its own. */
const tracings = {
  http: {
    backendRef: toBackend('http-collector'),
    randomSampling: sampled,
    clientSampling: '!("no-sample" in request.headers)',
    attributes: {
      remove: ['http.method', 'endpoint'],
      add: [
        { name: 'team', expression: 'request.headers["x-team"]' },
        { name: 'code', expression: 'response.code' },
        { name: 'list', expression: '[1, 2.5, true, "a", {"k": "v"}]' },
        { name: 'http.host', expression: '"replaced"' },
        { name: 'absent', expression: 'jwt.sub' },
      ],
    },
    resources: [
      { name: 'deployment.environment', expression: '"test"' },
      { name: 'service.name', expression: '"my-" + "gateway"' },
      { name: 'no.request', expression: 'request.path' },
    ],
  },
  grpc: {
    backendRef: { name: 'grpc-collector', port: 80 },
    protocol: 'GRPC',
    randomSampling: '1.0',
    attributes: { add: [{ name: 'span.name', expression: '"named " + request.method' }] },
  },
  half: { backendRef: toBackend('http-collector'), randomSampling: '0.5' },
  kept: {
    backendRef: toBackend('http-collector'),
    path: '/otlp/traces',
    randomSampling: 'true',
    filter: 'response.code == 200',
  },
  defaults: { backendRef: toBackend('http-collector') },
  never: { backendRef: toBackend('http-collector'), randomSampling: 'jwt.x', clientSampling: '0' },
  down: { backendRef: toBackend('down'), randomSampling: 'true' },
  lost: { backendRef: toBackend('absent'), randomSampling: 'true' },
} as const

export type Name = keyof typeof tracings

export const byHttp = new Collected()
export const byGrpc = new Collected()
export const httpCollector = useFixture(() => startHttpCollector(byHttp))
const grpcCollector = useFixture(() =>
  startGrpcCollector('/opentelemetry.proto.collector.trace.v1.TraceService/Export', (bytes) =>
    byGrpc.take(bytes),
  ),
)
export const upstream = useUpstream('main')
export const authorizer = useUpstream('authorizer', (_, response) => response.end())
const names = Object.keys(tracings) as Name[]
const ports = await freePorts(...names)
export const running = useGateway(async () => {
  const backendRefs = [toBackend('main')]
  return {
    manifests: [
      ...names.map((name) => gateway(ports[name], {}, name)),
      ...names.map((name) =>
        policy(name, `Gateway/${name}`, { frontend: { tracing: tracings[name] } }),
      ),
      staticBackend('main', upstream.port),
      staticBackend('http-collector', httpCollector.port),
      staticBackend('authorizer', authorizer.port, { auth: { key: 'for-the-authorizer' } }),
      httpRoute('asked', {
        hostnames: ['asked.example.com'],
        parentRefs: [{ name: 'http' }],
        rules: [{ backendRefs }],
      }),
      policy('asked', 'HTTPRoute/asked', {
        traffic: { extAuth: { backendRef: toBackend('authorizer'), http: {} } },
      }),
      staticBackend('down', await freePort()),
      staticBackend('unreachable', await freePort()),
      ...service('grpc-collector', [grpcCollector.port]),
      httpRoute('pattern', {
        hostnames: ['pattern.example.com'],
        parentRefs: [{ name: 'http' }],
        rules: [
          {
            matches: [{ path: { type: 'RegularExpression', value: '/re/[0-9]+' } }],
            backendRefs,
          },
        ],
      }),
      httpRoute('app', {
        parentRefs: names.map((name) => ({ name })),
        rules: [
          { matches: [{ path: { value: '/api' } }], backendRefs },
          { matches: [{ path: { type: 'Exact', value: '/exact' } }], backendRefs },
          {
            matches: [{ path: { value: '/unreachable' } }],
            backendRefs: [toBackend('unreachable')],
          },
          { backendRefs },
        ],
      }),
    ],
    args: ['--access-log', 'json'],
  }
})

export const send = (name: Name, request: TestRequest) => running.send(ports[name], request)
let count = 0
/** A path that no other request has. */
export const fresh = (path: string) => `${path}/${++count}`
