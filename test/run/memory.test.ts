/** What a gateway keeps in memory when many bytes that say little reach it, or each byte by itself. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { frameTypes } from '../../src/engines/http/http2/frames.ts'
import { RawConnection } from '../proxy/engine-rig.ts'
import { data, endHeaders, endStream, FrameClient, headers } from '../proxy/frame-client.ts'
import {
  type ExtProcServer,
  type Processor,
  passAll,
  startExtProcServer,
  streamed,
} from '../support/ext-proc-server.ts'
import { freePort, type RunningGateway, startGateway } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  httpRoute,
  manifest,
  mcpBackend,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { rawSession } from '../support/mcp-client.ts'

const MiB = 1024 * 1024
const completions = '/v1/chat/completions'
const events = { 'content-type': 'text/event-stream' }
const question = JSON.stringify({ model: 'm', stream: true, messages: [] })
const masks = { regex: { matches: ['secret-[0-9]+'] } }

let port: number
let running: RunningGateway
let processor: ExtProcServer
/** Resident memory of the gateway that is ready. */
let atStart = 0
const floodSize = 64 * MiB

/** Empty data lines, as many as the peer takes. */
async function flood(response: ServerResponse): Promise<void> {
  const piece = 'data:\n'.repeat(10_000)
  response.on('error', () => undefined).writeHead(200, events)
  for (let sent = 0; sent < floodSize && !response.destroyed; sent += piece.length) {
    await new Promise<void>((go) => response.write(piece, () => go()))
  }
  response.end()
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts).toString()
}

const vendor = createServer((request, response) => {
  bodyOf(request).then(() => flood(response))
})

const tools = createServer((request, response) => {
  bodyOf(request).then(async (text) => {
    const { id, method, params } = JSON.parse(text || '{}')
    if (method === 'tools/call') {
      await flood(response)
      return
    }
    const { protocolVersion } = params ?? {}
    const result = { protocolVersion, capabilities: {}, serverInfo: { name: 'x', version: '1' } }
    response.writeHead(id === undefined ? 202 : 200, { 'content-type': 'application/json' })
    response.end(id === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
})

/** Says how many bytes it has received; sends as many in chunks of one, unless the path has `brief`. */
const backend = createServer((request, response) => {
  bodyOf(request).then(({ length }) => {
    const head = `HTTP/1.1 200 OK\r\nX-Received: ${length}\r\nConnection: close\r\n`
    const count = request.url?.endsWith('/brief') ? 0 : length
    const chunks = `${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`
    response.socket?.end(`${head}Transfer-Encoding: chunked\r\n\r\n${chunks}`)
  })
})

const allow = createServer((request, response) => {
  bodyOf(request).then(() => response.end())
})

/** Keeps bodies of requests until all has come; lets everything else pass. */
function keepingProcessor(): Processor {
  const kept = new WeakMap<object, Buffer[]>()
  return (message, stream) => {
    const { request } = message
    if (request.case !== 'requestBody') return passAll(message, stream)
    const parts = kept.get(stream) ?? []
    kept.set(stream, parts)
    parts.push(Buffer.from(request.value.body))
    if (request.value.endOfStream) stream.send(streamed(request.case, Buffer.concat(parts), true))
  }
}

const listen = (server: Server): Promise<number> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })

beforeAll(async () => {
  port = await freePort()
  processor = await startExtProcServer(keepingProcessor())
  const vendorAddress = { host: '127.0.0.1', port: await listen(vendor) }
  const model = (name: string, settings: object) =>
    aiBackend(
      name,
      { provider: { vendorA: {}, ...vendorAddress } },
      { ai: { routes: { [completions]: 'Completions' }, ...settings } },
    )
  const route = (name: string, to: string) =>
    httpRoute(name, {
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
          backendRefs: [toBackend(to)],
        },
      ],
    })
  const guarded = (name: string, traffic: object) => [
    route(name, 'backend'),
    policy(name, `HTTPRoute/${name}`, { traffic }),
  ]
  const sizeOf = (what: string) => ({ set: [{ name: 'x-size', value: `string(size(${what}))` }] })
  const transformation = { request: sizeOf('request.body'), response: sizeOf('response.body') }
  const extAuth = { backendRef: toBackend('allow'), http: {}, forwardBody: { maxSize: 2 * MiB } }
  const held = { promptGuard: { response: [{ webhook: { backendRef: toBackend('allow') } }] } }
  running = await startGateway({
    env: { SLUICE_WORKERS: '1' },
    manifests: {
      'all.yaml': manifest(
        gateway(port),
        model('plain', {}),
        route('plain', 'plain'),
        model('masked', { promptGuard: { response: [masks] } }),
        route('masked', 'masked'),
        model('held', held),
        route('held', 'held'),
        mcpBackend('tools', [
          { name: 'tools', static: { host: '127.0.0.1', port: await listen(tools) } },
        ]),
        route('tools', 'tools'),
        staticBackend('backend', await listen(backend)),
        policy('http1', 'GatewayBackend/backend', { backend: { http: { version: 'HTTP1' } } }),
        staticBackend('allow', await listen(allow)),
        staticBackend('processor', processor.port),
        ...guarded('transformation', { transformation }),
        ...guarded('authorization', { extAuth }),
        ...guarded('processor', { extProc: { backendRef: toBackend('processor') } }),
      ),
    },
  })
  atStart = status('VmRSS')
}, 60_000)
afterAll(async () => {
  await running?.dispose()
  processor?.close()
  for (const server of [vendor, tools, backend, allow]) server.closeAllConnections()
  for (const server of [vendor, tools, backend, allow]) server.close()
})

const status = (name: string): number => {
  const all = readFileSync(`/proc/${running.pid}/status`, 'utf8')
  const [, kilobytes] = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(all) ?? []
  return Number(kilobytes) * 1024
}

/** The peak memory of the gateway meanwhile, above the memory that it had when it was ready. */
async function growth(act: () => Promise<unknown>): Promise<number> {
  // Forgets the highest value so far (proc(5)).
  writeFileSync(`/proc/${running.pid}/clear_refs`, '5')
  await act()
  return status('VmHWM') - atStart
}

/** Reads all of an answer, however it ends. */
async function readAll(answer: Response): Promise<void> {
  try {
    for await (const _ of answer.body ?? []);
  } catch {
    // The gateway may cut what is too large.
  }
}

const askModel = async (name: string) => {
  const url = `http://127.0.0.1:${port}/${name}${completions}`
  await readAll(await fetch(url, { method: 'POST', body: question }))
}

async function callTool(): Promise<void> {
  const session = await rawSession(port, '/tools')
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a', arguments: {} } }
  await session.send(port, call)
}

/** Sends a body in chunks of one byte, with HTTP/1.1; gives the head of the answer. */
async function sendChunks(name: string, size: number): Promise<string> {
  const connection = await RawConnection.connect(port)
  const head = `POST /${name} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n`
  connection.write(`${head}Transfer-Encoding: chunked\r\n\r\n`)
  connection.write(`${'1\r\nx\r\n'.repeat(size)}0\r\n\r\n`)
  await connection.untilEnd()
  connection.socket.destroy()
  return connection.text.slice(0, connection.text.indexOf('\r\n\r\n'))
}

/** Sends a body in DATA frames of one byte, as the windows of the gateway admit them. */
async function sendFrames(name: string, size: number): Promise<string> {
  const client = await FrameClient.connect(port, [[4, 2 ** 31 - 1]])
  const fields = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':authority', 'a'],
    [':path', `/${name}/brief`],
  ] as const
  client.send(headers(1, fields, endHeaders))
  /** The flow control windows of the connection and of the stream. */
  const windows: [number, number] = [65_535, 65_535]
  let seen = 0
  const admitted = (): number => {
    client.parse()
    for (; seen < client.frames.length; seen++) {
      const { type, stream = 0, payload = Buffer.alloc(0) } = client.frames[seen] ?? {}
      if (type === frameTypes.windowUpdate) windows[stream === 0 ? 0 : 1] += payload.readUInt32BE()
      for (let at = 0; type === frameTypes.settings && at < payload.length; at += 6) {
        // SETTINGS_INITIAL_WINDOW_SIZE counts from what a stream had without it (RFC 9113 6.9.2).
        if (payload.readUInt16BE(at) === 4) windows[1] += payload.readUInt32BE(at + 2) - 65_535
      }
    }
    return Math.min(...windows)
  }
  for (let left = size; left > 0; ) {
    await client.connection.until(() => admitted() > 0 || client.connection.closed)
    const count = Math.min(left, admitted())
    if (count <= 0)
      throw new Error(`the gateway has ended the connection: ${await client.refusal()}`)
    windows[0] -= count
    windows[1] -= count
    left -= count
    client.send(data(1, 'x').repeat(count))
  }
  client.send(data(1, '', endStream))
  await client.response(1)
  const found = client.headsOf(1)[0]?.join('\r\n') ?? ''
  client.connection.socket.destroy()
  return found
}

describe.runIf(existsSync('/proc/self/clear_refs'))('the memory of a gateway', () => {
  it.each(['transformation', 'authorization', 'processor'])(
    'stays small if bodies arrive byte by byte: %s',
    async (name) => {
      const size = MiB / 2
      const grown = await growth(async () => {
        const heads = await Promise.all([sendChunks(name, size), sendFrames(name, size)])
        for (const head of heads) expect(head.toLowerCase()).toContain(`x-received: ${size}`)
      })
      expect(grown).toBeLessThan(80 * MiB)
    },
  )

  it.each([
    ['a model', () => askModel('plain')],
    ['a model whose answer is masked', () => askModel('masked')],
    ['a model whose answer is held', () => askModel('held')],
    ['a tool', callTool],
  ] as const)('stays small if empty data lines come from %s', async (_from, ask) => {
    expect(await growth(ask)).toBeLessThan(160 * MiB)
  })
})
