/** A data plane on real sockets: the engine and the core in front, upstream servers behind. */
import {
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { createIoCore } from '../../src/engines/core/index.ts'
import { Engine } from '../../src/engines/http/engine.ts'
import type { ApplyResult } from '../../src/gateway/proxy/config/store.ts'
import { createDataPlane } from '../../src/gateway/proxy/data-plane.ts'
import type { DataPlaneSettings } from '../../src/gateway/proxy/plane-runtime.ts'
import type { AccessRecord } from '../../src/gateway/proxy/telemetry/types.ts'
import { canonicalJson } from '../../src/ground/base/canonical.ts'
import type { GatewayError } from '../../src/ground/errors/index.ts'
import type { Resource, ResourceKey } from '../../src/ground/model/resources.ts'

export interface Sent {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  readonly headers?: Record<string, string | string[]>
  readonly body?: string
}

export interface Received {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** What the echo upstream says it got. */
export interface Echo {
  readonly upstream: string
  readonly method: string
  readonly url: string
  readonly headers: Record<string, string>
  readonly body: string
}

export interface Rig {
  /** Bound before there is any configuration; listeners of tests name it. */
  readonly port: number
  apply(upserted: readonly Resource[], removed?: readonly ResourceKey[]): ApplyResult
  send(sent: Sent): Promise<Received>
  /** Sends a request, expects 200 from an echo upstream and returns the request that it received. */
  echo(sent: Sent): Promise<Echo>
  /** Facts of finished exchanges, in order; resolves once there are `count`. */
  facts(count: number): Promise<readonly AccessRecord[]>
  close(): Promise<void>
}

export async function startRig(settings: Partial<DataPlaneSettings> = {}): Promise<Rig> {
  const core = createIoCore({ memoryPages: 256 })
  const head = core.createHead({ maxFields: 100 })
  const facts: AccessRecord[] = []
  let awaited: { count: number; resolve(): void } | undefined
  const telemetry = {
    onDone(_exchange: unknown, fact: AccessRecord) {
      // The plane uses the object again.
      facts.push({ ...fact })
      if (awaited !== undefined && facts.length >= awaited.count) awaited.resolve()
    },
    onBadHead(_port: number, _error: GatewayError) {},
    onStreamDone() {},
    onEjected() {},
    onHealthChange() {},
    onExport() {},
    onLookup() {},
    onCallout() {},
  }
  const destinations = { allow: [], refuse: [], loopback: true }
  const engine = new Engine({ core, head, bindAddress: '127.0.0.1', reusePort: false })
  const plane = await createDataPlane({
    core,
    head,
    engine,
    telemetry,
    settings: { destinations, ...settings },
  })
  engine.serve({ handler: plane.handler })
  const port = await engine.listen(0)
  let sequence = 0
  return {
    port,
    apply(upserted, removed = []) {
      sequence++
      const versioned = upserted.map((resource) => ({
        version: canonicalJson(resource),
        resource,
      }))
      return plane.apply({ sequence, upserted: versioned, removed })
    },
    send: (sent) => exchange(port, sent),
    async echo(sent) {
      const received = await exchange(port, sent)
      if (received.status !== 200) throw new Error(`${received.status} ${received.body}`)
      return JSON.parse(received.body) as Echo
    },
    async facts(count) {
      if (facts.length < count) {
        await new Promise<void>((resolve) => {
          awaited = { count, resolve }
        })
      }
      return facts
    },
    async close() {
      engine.close()
    },
  }
}

/** One request on a connection of its own. */
export function exchange(port: number, sent: Sent): Promise<Received> {
  const { method = 'GET', path = '/', host = 'a.test', headers = {}, body } = sent
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, method, path, agent: false }
    const outgoing = request({ ...options, headers: { host, ...headers } }, (incoming) => {
      collect(incoming).then(
        (text) =>
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: text }),
        reject,
      )
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

async function collect(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

export interface Upstream {
  readonly port: number
  readonly requests: Echo[]
  close(): Promise<void>
}

type Answer = (request: IncomingMessage, response: ServerResponse, echo: Echo) => void

const answerEcho: Answer = (_request, response, echo) => {
  response.writeHead(200, { 'content-type': 'application/json', server: 'upstream' })
  response.end(JSON.stringify(echo))
}

/** A server that echoes requests, or sends the given answer. */
export async function startUpstream(name: string, answer: Answer = answerEcho): Promise<Upstream> {
  const requests: Echo[] = []
  const server: Server = createServer((incoming, response) => {
    void collect(incoming).then((body) => {
      const echo: Echo = {
        upstream: name,
        method: incoming.method ?? '',
        url: incoming.url ?? '',
        headers: incoming.headers as Record<string, string>,
        body,
      }
      requests.push(echo)
      answer(incoming, response, echo)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
