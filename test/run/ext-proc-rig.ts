import { connect } from 'node:http2'
import { beforeEach } from 'vitest'
import { type BareProcessor, startBareProcessor } from '../support/bare-processor.ts'
import {
  type ExtProcServer,
  type Processor,
  type ProcessorStream,
  passAll,
  startExtProcServer,
} from '../support/ext-proc-server.ts'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest, TestResponse } from '../support/http-client.ts'
import { keySetOf, signingKey } from '../support/identity-provider.ts'
import {
  configMap,
  gateway,
  hostOf,
  httpRoute,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { Answer } from '../support/upstream.ts'

export type Fields = Record<string, unknown>

export const issuer = 'https://idp.example.com'
export const echo: Answer = (received, response) => {
  response.setHeader('x-from', 'upstream')
  response.end(JSON.stringify(received))
}
const processed = (name: string, backendRef: Fields, traffic: Fields = {}) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, { traffic: { extProc: { backendRef }, ...traffic } }),
]
/** What the processor and the upstream do; each test may change it. */
export const given = { processor: passAll, answer: echo }

/** Passes everything unchanged, as a processor that is no gRPC library sees it. */
export const passEach: BareProcessor = (message, { send }) =>
  passAll(message, { send } as ProcessorStream)

export const key = await signingKey('one')
export const upstream = useUpstream('main', (received, response) =>
  given.answer(received, response),
)
const authority = useAuthority()
const any: Processor = (message, stream) => given.processor(message, stream)
export const server = useFixture(() => startExtProcServer(any))
/** What the bare processor does, and whether it ends its side of a stream after the gateway. */
export const bareGiven = { processor: passEach, endsAfterGateway: true }
export const bare = useFixture(() =>
  startBareProcessor(
    (message, stream) => bareGiven.processor(message, stream),
    () => bareGiven.endsAfterGateway,
  ),
)
export const secure = useFixture(() =>
  startExtProcServer(any, authority.issue(['processor.example.com'])),
)
export const port = await freePort()
export const early = await freePort()
const down = await freePort()
export const running = useGateway(() => {
  const listeners = [
    { name: 'http', port, protocol: 'HTTP' },
    { name: 'early', port: early, protocol: 'HTTP' },
  ]
  const jwt = { providers: [{ issuer, jwks: { inline: JSON.stringify(keySetOf(key)) } }] }
  const shown = [{ name: 'x-tier', value: 'extproc.tier' }]
  return {
    manifests: [
      gateway(port, { listeners }),
      staticBackend('main', upstream.port, { http: { version: 'HTTP1' } }),
      staticBackend('processor', server.port),
      staticBackend('down', down),
      staticBackend('impatient', server.port),
      policy('impatience', 'GatewayBackend/impatient', {
        backend: { http: { requestTimeout: '100ms' } },
      }),
      staticBackend('old', server.port),
      policy('old-http', 'GatewayBackend/old', { backend: { http: { version: 'HTTP1' } } }),
      configMap('authority', { 'ca.crt': authority.certificate }),
      staticBackend('secure', secure.port),
      policy('secure-backend', 'GatewayBackend/secure', {
        backend: {
          tls: { sni: 'processor.example.com', caCertificateRefs: [{ name: 'authority' }] },
          auth: { key: 'for-the-processor' },
        },
      }),
      ...service('processor', [server.port]),
      staticBackend('bare', bare.port),
      ...processed('bare', toBackend('bare')),
      ...processed('plain', toBackend('processor')),
      ...processed('retried', toBackend('processor'), {
        retry: { attempts: 1, backoff: '1ms', codes: [] },
      }),
      ...processed('service', { name: 'processor', port: 80 }),
      ...processed('secure', toBackend('secure')),
      ...processed('down', toBackend('down')),
      ...processed('old', toBackend('old')),
      ...processed('impatient', toBackend('impatient')),
      ...processed('nowhere', toBackend('nowhere')),
      ...processed('metadata', toBackend('processor'), {
        transformation: { request: { set: shown }, response: { set: shown } },
      }),
      ...processed('jwt', toBackend('processor'), { jwtAuthentication: jwt }),
      httpRoute('tiered', {
        hostnames: [hostOf('tiered')],
        rules: [
          {
            matches: [{ headers: [{ name: 'x-tier', value: 'gold' }] }],
            backendRefs: [toBackend('main')],
          },
        ],
      }),
      policy('early', 'Gateway/edge#early', {
        traffic: { phase: 'PreRouting', extProc: { backendRef: toBackend('processor') } },
      }),
    ],
  }
})
export const overHttp2 = useFixture(
  () => connect(`http://127.0.0.1:${port}`),
  (part) => part.destroy(),
)
beforeEach(() => {
  given.processor = passAll
  given.answer = echo
  bareGiven.processor = passEach
  bareGiven.endsAfterGateway = true
})

export const ask = (name: string, more: TestRequest = {}): Promise<TestResponse> =>
  running.send(port, { host: hostOf(name), path: '/cart?x=1', ...more })
export const post = (name: string, body: string) => ask(name, { method: 'POST', body })
export const received = () => upstream.received.at(-1)
export const parts = (from: ExtProcServer = server) =>
  from.streams.at(-1)?.messages.map(({ request }) => request.case)
/** Passes every part unchanged except one, which gets another answer. */
export const except = (part: string, answered: Processor): Processor => {
  return (message, stream) => (message.request.case === part ? answered : passAll)(message, stream)
}
export const failed = { status: 500, body: 'ext_proc failed' }
