/**
 * Run in a network namespace of its own: a gateway with the default addresses, asked over the loopback addresses
 * of the families given as arguments. Prints the answers and the clients that the gateway saw.
 */
import { execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { launcher } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  service,
  staticBackend,
  streamRoute,
  toBackend,
} from '../support/manifests.ts'
import { startUpstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const [mode = 'both', workers = '1'] = process.argv.slice(2)
execFileSync('ip', ['link', 'set', 'lo', 'up'])
if (mode === 'disabled') {
  writeFileSync('/proc/sys/net/ipv6/conf/all/disable_ipv6', '1')
  writeFileSync('/proc/sys/net/ipv6/conf/lo/disable_ipv6', '1')
}
const hosts = mode === 'disabled' ? ['127.0.0.1'] : ['127.0.0.1', '[::1]']

const upstream = await startUpstream()
const echo = createSocket('udp4')
echo.on('message', (message, { port, address }) => echo.send(message, port, address))
await new Promise<void>((resolve) => echo.bind(0, '127.0.0.1', resolve))
const listeners = [
  { name: 'http', port: 8080, protocol: 'HTTP' },
  { name: 'udp', port: 8053, protocol: 'UDP' },
]
const seen = { name: 'x-seen', value: 'source.address + " " + source.rawAddress' }
const allowed = ['127.0.0.0/8', '192.0.2.0/24', '::1/128']
  .map((range) => `cidr("${range}").containsIP(source.address)`)
  .join(' || ')
const folder = mkdtempSync(join(tmpdir(), 'sluice-families-'))
const echoPort = echo.address().port
writeFileSync(
  join(folder, 'all.yaml'),
  manifest(
    gateway(0, { listeners }),
    staticBackend('up', upstream.port),
    httpRoute('up', { rules: [{ backendRefs: [toBackend('up')] }] }),
    streamRoute('UDPRoute', 'echo', 'udp', [{ name: 'echo', port: 53 }]),
    ...service('echo', [echoPort], { port: 53, protocol: 'UDP' }),
    policy('p', 'HTTPRoute/up', {
      traffic: {
        transformation: { request: { set: [seen] } },
        authorization: { action: 'Allow', policy: { matchExpressions: [allowed] } },
      },
    }),
  ),
)
const args = ['run', '-f', folder, '--ephemeral', '--workers', workers]
const balancer = '127.0.0.9'
const proxied = ['--proxy-protocol-from', balancer, '--trusted-proxies', '127.0.0.1']
const child = spawn(launcher, [...args, ...proxied], { stdio: ['ignore', 'pipe', 'pipe'] })
let stdout = ''
child.stdout.on('data', (chunk: Buffer) => {
  stdout += chunk.toString()
})
child.stderr.pipe(process.stderr)

/** Status of a GET, or the error code. */
const ask = async (url: string, headers = {}): Promise<number | string> => {
  try {
    return (await fetch(url, { headers, signal: AbortSignal.timeout(5_000) })).status
  } catch (error) {
    return ((error as Error).cause as { code?: string } | undefined)?.code ?? String(error)
  }
}

/** What a datagram is answered with. */
const askUdp = (host: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = createSocket(host === '[::1]' ? 'udp6' : 'udp4')
    const repeat = setInterval(() => socket.send('ping', 8053, host.replace(/[[\]]/g, '')), 200)
    const end = (text: string) => {
      clearInterval(repeat)
      clearTimeout(limit)
      socket.close()
      resolve(text)
    }
    const limit = setTimeout(() => end('no answer'), 5_000)
    socket.on('message', (message) => end(message.toString()))
    socket.on('error', (error) => end(String(error)))
  })

/** The first line of the answer to a request with a PROXY header from the load balancer. */
const askProxied = (): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port: 8080, localAddress: balancer })
    const header = 'PROXY TCP4 192.0.2.9 198.51.100.1 4711 443\r\n'
    socket.write(`${header}GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`)
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    socket.on('error', () => resolve('reset'))
    socket.on('close', () => resolve(text.split('\r\n')[0] ?? ''))
  })

const ready = 'http://127.0.0.1:15021/healthz/ready'
try {
  await waitFor('the gateway', async () => (await ask(ready)) === 200 || child.exitCode !== null)
  const answers: Record<string, Record<string, number | string>> = {}
  for (const host of hosts) {
    answers[host] = {
      listener: await ask(`http://${host}:8080/`),
      forwarded: await ask(`http://${host}:8080/`, { 'x-forwarded-for': '::ffff:192.0.2.7' }),
      udp: await askUdp(host),
      readiness: await ask(`http://${host}:15021/healthz/ready`),
      stats: await ask(`http://${host}:15020/metrics`),
      admin: await ask(`http://${host}:15000/config_dump`),
      // Without its token.
      console: await ask(`http://${host}:15004/`),
    }
  }
  const proxiedAnswer = await askProxied()
  await waitFor('the log', () => stdout.split('\n').length > 2 * hosts.length + 1)
  const clients = upstream.received.map(({ headers }) => headers['x-seen'])
  const logged = [...stdout.matchAll(/ src\.addr=(\S+?):\d+ /g)].map(([, address]) => address)
  console.log(
    JSON.stringify({ answers, proxiedAnswer, clients, logged: [...new Set(logged)].sort() }),
  )
} finally {
  child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)
