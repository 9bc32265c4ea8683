/** Everything around the gateway: tagged upstreams, real servers and proxies, policy services, vendors, tools. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { Random } from '../fuzz/support/random.ts'
import { Authority, type Certificate } from '../support/certificates.ts'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import { fieldsOf, passAll, startExtProcServer } from '../support/ext-proc-server.ts'
import { freePorts } from '../support/free-port.ts'
import { TestMcpServer } from '../support/mcp-server.ts'
import {
  envoyCluster,
  envoyListener,
  nginxConfig,
  type ProxyName,
  type RealProxy,
  startRealProxy,
} from '../support/real-proxies.ts'
import {
  forbiddenField,
  startTaggedUpstream,
  type TaggedUpstream,
} from '../support/tagged-upstream.ts'
import { startUpstream } from '../support/upstream.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { startVendorC } from '../support/vendors/vendor-c.ts'
import type { Ledger } from './ledger.ts'
import { type Bills, completes, says } from './vendors.ts'

/** A line of the file that nginx serves; the line at a place can be computed. */
export const fileLine = (at: number): string => `line-${String(at).padStart(6, '0')}\n`
export const fileLines = 20_000
export const fileText = Array.from({ length: fileLines }, (_, at) => fileLine(at)).join('')

type Closable = { close(): unknown }

export interface Servers {
  /** The gateway's ports, of which the fronts need the first before it is started. */
  readonly gateway: number
  readonly secureGateway: number
  readonly tagged: TaggedUpstream
  /** The same over TLS. */
  readonly secure: TaggedUpstream
  /** The certificate of the gateway, and the authority of the secure upstream. */
  readonly certificate: Certificate
  readonly authority: string
  readonly ports: Readonly<Record<'auth' | 'authGrpc' | 'processor' | 'a' | 'flaky' | 'c', number>>
  readonly tools: readonly number[]
  /** The port of each real server that is used as an upstream. */
  readonly upstreams: ReadonlyMap<ProxyName, number>
  /** The port of each real proxy in front of the gateway. */
  readonly fronts: ReadonlyMap<ProxyName, number>
  readonly programs: ReadonlyMap<string, RealProxy>
  readonly bills: Bills
  /** Drops what the test servers have recorded. */
  forget(): void
  /** Ends the proxies in front of the gateway, with the connections that they keep. */
  closeFronts(): Promise<void>
  close(): Promise<void>
}

export async function startServers(
  ledger: Ledger,
  seed: number,
  programs: readonly ProxyName[],
): Promise<Servers> {
  const started: Closable[] = []
  const use = <Server extends Closable>(server: Server): Server => {
    started.push(server)
    return server
  }
  const close = async () => {
    for (const one of started.reverse()) await one.close()
  }
  try {
    const tagged = use(await startTaggedUpstream())
    const authority = new Authority()
    use({ close: () => authority.dispose() })
    const secure = use(await startTaggedUpstream(authority.issue(['tagged.test'])))
    const certificate = authority.issue(['tagged.example.com'])
    const bills: Bills = new Map()
    const policies = await startPolicyServices(use)
    const vendors = await startVendors(use, ledger, bills, seed)
    const tools = await startTools(use)
    const { gateway, secureGateway } = await freePorts('gateway', 'secureGateway')
    const real = await startReal(use, programs, tagged.port, gateway)
    const forget = () => {
      policies.forget()
      for (const vendor of vendors.all) vendor.calls.length = 0
      for (const one of tools) one.received.length = 0
    }
    const closeFronts = async () => {
      for (const [name, program] of real.programs) {
        if (name.endsWith('-front')) await program.close()
      }
    }
    const ports = { ...policies.ports, ...vendors.ports }
    return {
      ...{ gateway, secureGateway, tagged, secure, certificate, ports, bills },
      ...{ authority: authority.certificate, tools: tools.map(({ port }) => port) },
      ...real,
      ...{ forget, closeFronts, close },
    }
  } catch (error) {
    await close()
    throw error
  }
}

type Use = <Server extends Closable>(server: Server) => Server

async function startPolicyServices(use: Use) {
  const auth = use(
    await startUpstream('auth', ({ headers }, response) => {
      response.writeHead(headers[forbiddenField] === undefined ? 200 : 403).end()
    }),
  )
  const authGrpc = use(await startExtAuthServer())
  authGrpc.answerEach((asked) => {
    const { headers = {} } = asked?.request?.http ?? {}
    return headers[forbiddenField] === undefined ? {} : { status: { code: 7 } }
  })
  const processor = use(
    await startExtProcServer((message, stream) => {
      const { request } = message
      if (
        request.case !== 'requestHeaders' ||
        fieldsOf(request.value)[forbiddenField] === undefined
      ) {
        passAll(message, stream)
        return
      }
      const immediate = { status: { code: 403 }, body: Buffer.from('refused') }
      stream.send({ response: { case: 'immediateResponse', value: immediate } })
    }),
  )
  const forget = () => {
    for (const one of [auth, authGrpc, processor]) one.forget()
  }
  return {
    ports: { auth: auth.port, authGrpc: authGrpc.port, processor: processor.port },
    forget,
  }
}

async function startVendors(use: Use, ledger: Ledger, bills: Bills, seed: number) {
  const [a, flaky, c] = [
    use(await startVendorA()),
    use(await startVendorA()),
    use(await startVendorC()),
  ]
  a.answer = completes(ledger, bills, new Random(seed + 1))
  flaky.answer = completes(ledger, bills, new Random(seed + 2), 10)
  c.answer = says(ledger, bills, new Random(seed + 3))
  return { all: [a, flaky, c], ports: { a: a.port, flaky: flaky.port, c: c.port } }
}

async function startTools(use: Use): Promise<TestMcpServer[]> {
  const start = async (isStateless: boolean) => {
    const server = await new TestMcpServer({
      isStateless,
      offer: (offered) => {
        offered.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text }) => ({
          content: [{ type: 'text', text }],
        }))
      },
    }).start()
    use({ close: () => server.kill() })
    return server
  }
  return [await start(false), await start(true)]
}

/** The real servers, each once behind the gateway; nginx and Envoy also in front of it. */
async function startReal(
  use: Use,
  names: readonly ProxyName[],
  tagged: number,
  gateway: number,
): Promise<Pick<Servers, 'upstreams' | 'fronts' | 'programs'>> {
  const upstreams = new Map<ProxyName, number>()
  const fronts = new Map<ProxyName, number>()
  const programs = new Map<string, RealProxy>()
  for (const name of names) {
    const { behind, front } = await freePorts('behind', 'front')
    const start = async (port: number, configure: (folder: string) => string) =>
      use(await startRealProxy(name, port, configure))
    upstreams.set(name, behind)
    programs.set(name, await start(behind, behindOf[name](behind, tagged)))
    const configure = frontOf[name]
    if (configure === undefined) continue
    fronts.set(name, front)
    programs.set(`${name}-front`, await start(front, configure(front, gateway)))
  }
  return { upstreams, fronts, programs }
}

type Configure = (port: number, to: number) => (folder: string) => string

const nginxPassing = `proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
  proxy_buffering off; proxy_request_buffering off; proxy_next_upstream off; keepalive_timeout 600s;
  keepalive_requests 1000000; proxy_read_timeout 60s;`

const nginxBehind: Configure = (port, to) => (folder) => {
  mkdirSync(join(folder, 'files'))
  writeFileSync(join(folder, 'files', 'lines.txt'), fileText)
  return nginxConfig(
    folder,
    `${nginxPassing}
  upstream tagged { server 127.0.0.1:${to}; keepalive 64; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://tagged; }
    location /files/ { root ${folder}; }
  }`,
  )
}

const nginxFront: Configure = (port, to) => (folder) =>
  nginxConfig(
    folder,
    `${nginxPassing}
  upstream gateway { server 127.0.0.1:${to}; keepalive 64; keepalive_requests 1000000; }
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://gateway; } }`,
  )

const haproxyBehind: Configure = (port, to) => () =>
  `global
  nbthread 1
  maxconn 2000
defaults
  mode http
  option http-keep-alive
  http-reuse always
  timeout connect 5s
  timeout client 600s
  timeout server 60s
listen behind
  bind 127.0.0.1:${port}
  server tagged 127.0.0.1:${to} pool-max-conn 64
`

const envoyPassing =
  (options: object): Configure =>
  (port, to) =>
  () => {
    const route = { match: { prefix: '/' }, route: { cluster: 'next', timeout: '60s' } }
    const hosts = [{ name: 'all', domains: ['*'], routes: [route] }]
    const listener = envoyListener(
      port,
      { virtual_hosts: hosts },
      { http_protocol_options: { enable_trailers: true }, proxy_100_continue: true },
    )
    const clusters = [envoyCluster('next', to, options)]
    return JSON.stringify({ static_resources: { listeners: [listener], clusters } })
  }

const behindOf: Readonly<Record<ProxyName, Configure>> = {
  nginx: nginxBehind,
  haproxy: haproxyBehind,
  envoy: envoyPassing({ http_protocol_options: { enable_trailers: true } }),
}

const frontOf: Readonly<Partial<Record<ProxyName, Configure>>> = {
  nginx: nginxFront,
  envoy: envoyPassing({ http2_protocol_options: {} }),
}
