/** A gateway that opens tunnels to destinations that its clients name. */
import { createServer, type Socket } from 'node:net'
import { DnsServer } from '../support/dns-server.ts'
import {
  useAuthority,
  useFixture,
  useGateway,
  useListening,
  useUpstream,
} from '../support/fixture.ts'
import { freePort, freePorts } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startTlsUpstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

export const authority = useAuthority()
export const dns = useFixture(() => new DnsServer().start())
export const web = useUpstream('web')
export const secure = useFixture(() =>
  startTlsUpstream({ name: 'secure', tls: authority.issue(['a.example.com', 'b.example.com']) }),
)
/** Connections to a server that echoes bytes, and says `hello` first. */
export const accepted: Socket[] = []
export const echo = useListening(
  createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket)
    socket.on('error', () => {})
    socket.write('hello\n')
    socket.pipe(socket)
  }),
)
export const port = await freePorts('proxy', 'closed', 'limited', 'named', 'prompt')
export const stats = `127.0.0.1:${await freePort()}`

const names = [
  'a.example.com',
  'b.example.com',
  'metadata.example.com',
  'xn--bcher-kva.example.com',
]
const dynamic = { ...staticBackend('any', 0), spec: { dynamicForwardProxy: {} } }
/** Users whose password is `pw`. */
const users = ['alice', 'bob'].map((user) => `${user}:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=`)

const onGateway = (name: string, to: number) =>
  gateway(to, { listeners: [{ name: 'http', port: to, protocol: 'HTTP' }] }, name)

export const destinations = () => [443, secure.port, web.port, echo.port]

export const running = useGateway(() => {
  for (const name of names) dns.hosts.set(name, ['127.0.0.1'])
  dns.hosts.set('metadata.example.com', ['169.254.169.254'])
  const connect = (more: object = {}) => ({
    frontend: { connect: { mode: 'Route', ports: destinations(), ...more } },
  })
  const parentRefs = ['proxy', 'closed', 'limited', 'named', 'prompt'].map((name) => ({ name }))
  return {
    args: ['--name-servers', dns.address, '--stats-address', stats],
    manifests: {
      'all.yaml': manifest(
        ...(Object.entries(port) as [string, number][]).map(([name, to]) => onGateway(name, to)),
        dynamic,
        httpRoute('open', {
          parentRefs,
          hostnames: names,
          rules: [{ backendRefs: [toBackend('any')] }],
        }),
        httpRoute('members', {
          parentRefs,
          hostnames: ['localhost'],
          rules: [{ backendRefs: [toBackend('any')] }],
        }),
        httpRoute('addresses', {
          parentRefs,
          hostnames: [],
          rules: [
            {
              matches: [{ headers: [{ name: 'x-address', value: 'yes' }] }],
              backendRefs: [toBackend('any')],
            },
          ],
        }),
        policy('proxy', 'Gateway/proxy', connect()),
        policy('limited', 'Gateway/limited', connect({ maxTunnels: 2, idleTimeout: '200ms' })),
        policy('named', 'Gateway/named', connect({ serverName: 'Match', maxDuration: '1s' })),
        policy('prompt', 'Gateway/prompt', {
          frontend: {
            ...connect({ serverName: 'Match' }).frontend,
            tls: { handshakeTimeout: '100ms' },
          },
        }),
        policy('members', 'HTTPRoute/members', {
          traffic: {
            basicAuthentication: { users, realm: 'proxy' },
            authorization: {
              policy: {
                matchExpressions: ['basicAuth.username == "alice" && request.method == "CONNECT"'],
              },
            },
          },
        }),
      ),
    },
  }
})

/** Waits for a line of the access log with all the parts. */
export const logLine = (...parts: string[]) =>
  waitFor(`a line of the access log with ${parts.join(', ')}`, () =>
    running.stdout.split('\n').find((line) => parts.every((part) => line.includes(part))),
  )

/** Waits until the echo server has one more connection. */
export async function nextAccepted(work: () => Promise<unknown>): Promise<Socket> {
  const before = accepted.length
  await work()
  return waitFor('a connection to the echo server', () => accepted[before])
}
