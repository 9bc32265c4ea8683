/** A proxy with real workers and sockets, an upstream, and a channel to publish on. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InProcessChannel } from '../../src/control/xds/channel.ts'
import type { ProxyEvent, ProxyOptions } from '../../src/gateway/proxy/workers/proxy-options.ts'
import { startProxy } from '../../src/gateway/proxy/workers/supervisor.ts'
import type { Resource, VersionedResource } from '../../src/ground/model/resources.ts'

export const gateway = { namespace: 'default', name: 'public' }

export function listener(name: string, port: number): Resource {
  return {
    type: 'listener',
    key: `listener/Gateway/default/public/${name}`,
    gateway,
    owner: { kind: 'Gateway', ...gateway },
    section: name,
    port,
    protocol: 'HTTP',
    hostname: '',
  }
}

/** A rule that sends everything under a prefix to a static backend. */
export function route(name: string, prefix: string, listeners: readonly string[]): Resource {
  return {
    type: 'route',
    key: `route/HTTPRoute/default/${name}/0`,
    created: 1,
    order: 0,
    route: { kind: 'HTTPRoute', namespace: 'default', name },
    ruleIndex: 0,
    attachments: listeners.map((section) => ({
      listener: `listener/Gateway/default/public/${section}`,
      hostnames: [''],
    })),
    matches: [{ path: { type: 'PathPrefix', value: prefix }, headers: [], query: [] }],
    filters: [],
    backends: [
      {
        weight: 1,
        target: { type: 'backend', namespace: 'default', name: 'upstream' },
        filters: [],
      },
    ],
  }
}

export function backend(port: number): Resource {
  return {
    type: 'backend',
    key: 'backend/default/upstream',
    namespace: 'default',
    name: 'upstream',
    destination: { type: 'static', host: '127.0.0.1', port },
  }
}

export const version = (resource: Resource): VersionedResource => ({
  version: JSON.stringify(resource),
  resource,
})

export async function openUpstream(answer: RequestListener) {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  }
  return { port, close }
}

/** A file that takes the access log. */
function openLogFile() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-proxy-'))
  const path = join(folder, 'access.log')
  const fd = openSync(path, 'a')
  const lines = () => readFileSync(path, 'utf8').split('\n').slice(0, -1)
  const remove = () => {
    closeSync(fd)
    rmSync(folder, { recursive: true })
  }
  return { fd, lines, remove }
}

export async function openProxy(options: Partial<ProxyOptions> = {}) {
  const file = options.accessLogFd === undefined ? openLogFile() : undefined
  const answers: unknown[][] = []
  const events: ProxyEvent[] = []
  const channel = new InProcessChannel({
    onAck: (...answer) => answers.push(['ack', ...answer]),
    onReject: (...answer) => answers.push(['reject', ...answer]),
    onRecover: (...answer) => answers.push(['recover', ...answer]),
  })
  let sequence = 0
  const proxy = await startProxy({
    bindAddress: '127.0.0.1',
    adminAddress: '127.0.0.1:0',
    statsAddress: '127.0.0.1:0',
    readinessAddress: '127.0.0.1:0',
    ...(file && { accessLogFd: file.fd }),
    version: '1.2.3',
    destinations: { allow: [], refuse: [], loopback: true },
    channel,
    onEvent: (event) => events.push(event),
    ...options,
  }).catch((error) => {
    file?.remove()
    throw error
  })
  return {
    proxy,
    channel,
    answers,
    events,
    /** The access log so far, line by line. */
    lines: () => file?.lines() ?? [],
    publish(upserted: readonly Resource[], removed: readonly string[] = []) {
      sequence++
      channel.publish({ sequence, upserted: upserted.map(version), removed })
      return sequence
    },
    async readiness() {
      const response = await fetch(`http://${proxy.addresses.readiness}/healthz/ready`)
      return [response.status, await response.text()] as const
    },
    async scrape() {
      const response = await fetch(`http://${proxy.addresses.stats}/metrics`)
      return await response.text()
    },
    async close() {
      await proxy.close()
      file?.remove()
    },
  }
}
