/**
 * The two ends of a measured proxy, in this process: an upstream that answers from ready-made bytes,
 * and a closed-loop client that sends ready-made bytes over keep-alive connections. Both are raw
 * sockets, so that they leave the proxy as the bottleneck.
 */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type BenchUpstream, startEventUpstream } from './event-upstream.ts'

export interface Scenario {
  readonly name: string
  /** The whole request, as bytes. */
  readonly request: Buffer
  /** Bytes of the upstream's whole response; undefined for a stream of events. */
  readonly response: Buffer | undefined
}

/** Every measured request: routed by host, path prefix and the header `x-team`. */
export const routing = { host: 'bench.example.com', path: '/api/', header: 'x-team', value: 'a' }

const large = 64 * 1024
const event = 'data: {"choices":[{"delta":{"content":" gateway"},"index":0}],"id":"chunk-0001"}\n\n'
const eventChunk = Buffer.from(`${event.length.toString(16)}\r\n${event}\r\n`)
const lastChunk = Buffer.from('0\r\n\r\n')
const streamHead = Buffer.from(
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n',
)

function request(method: string, path: string, body = ''): Buffer {
  const length =
    body === '' ? [] : ['content-type: application/json', `content-length: ${body.length}`]
  const lines = [
    `${method} ${routing.path}${path} HTTP/1.1`,
    `host: ${routing.host}`,
    'user-agent: bench/1.0',
    'accept: */*',
    'authorization: Bearer 0123456789abcdef0123456789abcdef',
    `${routing.header}: ${routing.value}`,
    ...length,
    '\r\n',
  ]
  return Buffer.from(lines.join('\r\n') + body, 'latin1')
}

function response(length: number): Buffer {
  const head = ['HTTP/1.1 200 OK', 'content-type: application/json', `content-length: ${length}`]
  return Buffer.from(`${[...head, '\r\n'].join('\r\n')}${'x'.repeat(length)}`, 'latin1')
}

export const scenarios = {
  get: { name: 'GET, 100 B response', request: request('GET', 'get'), response: response(100) },
  post: {
    name: 'POST 4 KB, 100 B response',
    request: request('POST', 'post', 'x'.repeat(4096)),
    response: response(100),
  },
  large: {
    name: 'GET, 64 KB response',
    request: request('GET', 'large'),
    response: response(large),
  },
  sse: { name: 'server-sent event', request: request('GET', 'sse'), response: undefined },
} as const satisfies Record<string, Scenario>

export type ScenarioName = keyof typeof scenarios

/** A GET of a response with this number of bytes; the upstream must be started with this scenario. */
export const getOfSize = (bytes: number): Scenario => ({
  name: `GET, ${bytes} B response`,
  request: request('GET', `size-${bytes}`),
  response: response(bytes),
})

/** The path, by which the upstream distinguishes the scenarios. */
const pathOf = ({ request: bytes }: Scenario): string =>
  bytes.toString('latin1', 0, bytes.indexOf('\r\n')).split(' ')[1] ?? ''

/** `more`: scenarios that it answers besides those above. */
export function startBenchUpstream(more: readonly Scenario[] = []): Promise<BenchUpstream> {
  const all = [...Object.values(scenarios), ...more]
  const byPath = new Map<string, Scenario>(all.map((scenario) => [pathOf(scenario), scenario]))
  const stream = { event: eventChunk, ending: lastChunk, countsEnding: false }
  return startEventUpstream(stream, (socket, begin) => {
    answerAll(socket, byPath, ({ response: ready }) => {
      if (ready !== undefined) return socket.write(ready)
      begin()
      return socket.write(streamHead)
    })
  })
}

/** Calls back for each whole request; knows Content-Length and chunked bodies of one piece. */
function answerAll(
  socket: Socket,
  byPath: ReadonlyMap<string, Scenario>,
  answer: (scenario: Scenario) => unknown,
): void {
  let missing = 0
  let current: Scenario = scenarios.get
  let isChunked = false
  let pending: Buffer | undefined
  socket.on('data', (piece: Buffer) => {
    if (isChunked) {
      if (!piece.subarray(-5).equals(lastChunk)) return
      isChunked = false
      answer(current)
      return
    }
    if (missing > 0) {
      missing -= piece.length
      if (missing <= 0) answer(current)
      return
    }
    const bytes = pending === undefined ? piece : Buffer.concat([pending, piece])
    const end = bytes.indexOf('\r\n\r\n')
    pending = end < 0 ? bytes : undefined
    if (end < 0) return
    const head = bytes.toString('latin1', 0, end)
    const from = head.indexOf(' ') + 1
    current = byPath.get(head.slice(from, head.indexOf(' ', from))) ?? scenarios.get
    if (current === scenarios.post) {
      if (/transfer-encoding: *chunked/i.test(head)) {
        isChunked = !bytes.subarray(-5).equals(lastChunk)
        if (isChunked) return
      } else {
        missing = lengthIn(head) - (bytes.length - end - 4)
        if (missing > 0) return
      }
    }
    answer(current)
  })
}

/** The Content-Length of a head however it is written; 0 without one. */
function lengthIn(head: string): number {
  const at = head.search(/content-length:/i)
  return at < 0 ? 0 : Number.parseInt(head.slice(at + 15), 10)
}

/** Opens a connection of a client. */
export type Dial = (port: number) => Socket

export const dialPlain: Dial = (port) => connect({ port, host: '127.0.0.1', noDelay: true })

/** One whose requests wait for a TLS handshake; the bench has made the certificate. */
export const dialTls: Dial = (port) =>
  connectTls({
    port,
    host: '127.0.0.1',
    servername: routing.host,
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  })

export interface Load {
  /** Whole responses so far. */
  readonly responses: () => number
  stop(): Promise<void>
}

export interface PausableLoad extends Load {
  /** Sends no more; resolves when all that was sent is answered. */
  pause(): Promise<void>
  /** Every connection sends its next request. */
  resume(): void
}

/** Keeps `connections` busy: each sends its next request when its response is whole. */
export function startLoad(
  port: number,
  scenario: Scenario,
  connections: number,
  dial: Dial = dialPlain,
): PausableLoad {
  let responses = 0
  let isStopped = false
  let failure: Error | undefined
  const resting: Socket[] = []
  let paused: (() => void) | undefined
  const goOn = (socket: Socket) => {
    if (paused === undefined) {
      socket.write(scenario.request)
      return
    }
    resting.push(socket)
    if (resting.length === connections) paused()
  }
  const open = Array.from({ length: connections }, () => {
    const socket = dial(port)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    socket.on('error', (error) => {
      if (!isStopped) failure ??= error
    })
    socket.once('close', () => {
      if (!isStopped) failure ??= new Error('the proxy closed a connection under load')
    })
    socket.once('connect', () => socket.write(scenario.request))
    readResponses(socket, scenario.response === undefined, (status) => {
      if (status !== '200') failure ??= new Error(`the proxy answered ${status} under load`)
      responses++
      if (!isStopped) goOn(socket)
    })
    return { socket, closed }
  })
  const pause = () =>
    new Promise<void>((resolve, reject) => {
      paused = () => (failure === undefined ? resolve() : reject(failure))
    })
  const resume = () => {
    paused = undefined
    for (const socket of resting.splice(0)) socket.write(scenario.request)
  }
  const stop = async () => {
    isStopped = true
    for (const { socket } of open) socket.destroy()
    await Promise.all(open.map(({ closed }) => closed))
    if (failure !== undefined) throw failure
  }
  return { responses: () => responses, pause, resume, stop }
}

/** Calls back with the status of each whole response. A stream ends with its last chunk. */
function readResponses(socket: Socket, isStream: boolean, done: (status: string) => void): void {
  let missing = 0
  let status = ''
  let isInStream = false
  let pending: Buffer | undefined
  socket.on('data', (piece: Buffer) => {
    if (missing > 0) {
      missing -= piece.length
      if (missing <= 0) done(status)
      return
    }
    if (isInStream) {
      if (!piece.subarray(-5).equals(lastChunk)) return
      isInStream = false
      done(status)
      return
    }
    const bytes = pending === undefined ? piece : Buffer.concat([pending, piece])
    const end = bytes.indexOf('\r\n\r\n')
    pending = end < 0 ? bytes : undefined
    if (end < 0) return
    const head = bytes.toString('latin1', 0, end)
    status = head.slice(9, 12)
    if (isStream && status === '200') {
      isInStream = true
      return
    }
    missing = lengthIn(head) - (bytes.length - end - 4)
    if (missing <= 0) done(status)
  })
}

/** One request on a connection of its own: the answer's head, for checks before measuring. */
export function askOnce(port: number, bytes: Buffer, dial: Dial = dialPlain): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = dial(port).once('connect', () => socket.write(bytes))
    let text = ''
    socket.setTimeout(5_000, () => socket.destroy(new Error('no answer within 5 s')))
    socket.on('error', reject)
    socket.on('data', (piece) => {
      text += piece.toString('latin1')
      if (!text.includes('\r\n\r\n')) return
      socket.destroy()
      resolve(text.slice(0, text.indexOf('\r\n\r\n')))
    })
  })
}
