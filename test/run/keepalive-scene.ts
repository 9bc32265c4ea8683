/**
 * Run in a network namespace of its own: a gateway with a connection to each of three backends, then
 * the loopback interface goes down and no probe is answered any more. Prints the names of those
 * whose connection is still there once the first one has gone.
 */
import { execFileSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startGateway } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'
import { connectionsTo } from '../support/tcp-table.ts'
import { waitFor } from '../support/wait-for.ts'

const keepalives = {
  gone: { time: '1s', interval: '1s', retries: 1 },
  patient: { time: '1s', interval: '1s', retries: 60 },
  slow: { time: '1s', interval: '60s', retries: 1 },
}
const names = Object.keys(keepalives) as (keyof typeof keepalives)[]

execFileSync('ip', ['link', 'set', 'lo', 'up'])
const upstreams = await Promise.all(
  names.map(async (name) => {
    const server = createServer((_, response) => response.end(name))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return { name, port: (server.address() as AddressInfo).port }
  }),
)
const port = 8080
const running = await startGateway({
  args: ['--workers', '1'],
  manifests: {
    'all.yaml': manifest(
      gateway(port),
      ...upstreams.flatMap(({ name, port: to }) => [
        staticBackend(name, to, { tcp: { keepalive: keepalives[name] } }),
        httpRoute(name, {
          hostnames: [`${name}.example.com`],
          rules: [{ backendRefs: [toBackend(name)] }],
        }),
      ]),
    ),
  },
})

/** The backends with an established connection from the gateway. */
const connected = () =>
  upstreams.flatMap(({ name, port: to }) => (connectionsTo(to).length > 0 ? [name] : []))

for (const name of names) await running.send(port, { host: `${name}.example.com` })
const before = connected()
execFileSync('ip', ['link', 'set', 'lo', 'down'])
await waitFor('the end of a connection', () => !connected().includes('gone'))
const after = connected()
await running.kill()
console.log(JSON.stringify({ before, after }))
process.exit(0)
