/**
 * Latencies of requests. In an open loop, requests are due at a fixed rate, whether earlier ones have been
 * answered or not. Latency counts from the moment when a request was due, so that a proxy that stalls cannot
 * hide the wait of the requests that it kept from being sent. In a closed loop, every connection sends its next
 * request when the last one is answered.
 */
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Dial } from './load.ts'

export interface Loop {
  readonly port: number
  readonly request: Buffer
  readonly seconds: number
  readonly dial: Dial
  /** Is the response a stream? Then its latency is that of the first event. */
  readonly isStream: boolean
}

export interface OpenLoop extends Loop {
  readonly perSecond: number
}

const headEnd = '\r\n\r\n'
const bodyEnd = Buffer.from('0\r\n\r\n')
/** How long to wait for the last responses. */
const lastResponsesMs = 5_000
/** Connections that are opened before the first request is due. */
const connections = 64
/** The loop never sleeps, because timers are up to a millisecond late. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Returns the latency of every request in milliseconds. Rejects if a connection or a response fails. */
export function openLoop({ perSecond, ...loop }: OpenLoop): Promise<number[]> {
  return withClients(loop, connections, async (idle, latencies, check) => {
    const count = perSecond * loop.seconds
    const begun = performance.now()
    const dueAt = (n: number) => begun + (n * 1_000) / perSecond
    const latest = dueAt(count) + lastResponsesMs
    for (let sent = 0; latencies.length < count; await turn()) {
      check()
      const now = performance.now()
      if (now > latest) throw new Error(`${count - latencies.length} requests got no response`)
      // A request that is due waits for an idle connection, which counts.
      while (sent < count && dueAt(sent) <= now) {
        const client = idle.pop()
        if (client === undefined) break
        client.send(loop.request, dueAt(sent++))
      }
    }
  })
}

/** The same for a full load. */
export function closedLoop(loop: Loop, connections: number): Promise<number[]> {
  return withClients(loop, connections, async (idle, _latencies, check) => {
    const until = performance.now() + loop.seconds * 1_000
    for (; performance.now() < until; await turn()) {
      check()
      for (const client of idle.splice(0)) client.send(loop.request, performance.now())
    }
  })
}

/** Opens connections, and closes them when all is sent. Connections without a request are in `idle`. */
async function withClients(
  { port, dial, isStream }: Loop,
  count: number,
  send: (idle: Client[], latencies: readonly number[], check: () => void) => Promise<void>,
): Promise<number[]> {
  const latencies: number[] = []
  const idle: Client[] = []
  const clients = Array.from({ length: count }, () => {
    const client = new Client(dial(port), isStream, latencies, () => idle.push(client))
    return client
  })
  const check = () => {
    const failure = clients.find(({ failed }) => failed !== undefined)?.failed
    if (failure !== undefined) throw failure
  }
  try {
    await Promise.all(clients.map(({ opened }) => opened))
    await send(idle, latencies, check)
    return latencies
  } finally {
    for (const client of clients) client.close()
  }
}

/** A connection with one request at a time. */
class Client {
  readonly #socket: Socket
  readonly #latencies: number[]
  /** Resolves once requests can be sent. */
  readonly opened: Promise<void>
  readonly #free: () => void
  #due = 0
  #isAnswered = true
  /** Bytes of the body that are still to come. */
  #missing = 0
  #text = ''
  failed: Error | undefined

  constructor(socket: Socket, isStream: boolean, latencies: number[], free: () => void) {
    this.#socket = socket
    this.#latencies = latencies
    this.#free = free
    this.opened = new Promise((resolve, reject) => {
      socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => {
        free()
        resolve()
      })
      socket.on('error', (error) => {
        this.failed ??= error
        reject(error)
      })
    })
    socket.on('data', (bytes: Buffer) => (isStream ? this.#readStream(bytes) : this.#read(bytes)))
  }

  send(request: Buffer, due: number): void {
    this.#due = due
    this.#isAnswered = false
    this.#missing = 0
    this.#text = ''
    this.#socket.write(request)
  }

  close(): void {
    this.#socket.destroy()
  }

  #read(bytes: Buffer): void {
    if (this.#missing > 0) this.#missing -= bytes.length
    else {
      this.#text += bytes.toString('latin1')
      const end = this.#text.indexOf(headEnd)
      if (end < 0) return
      this.#checkStatus()
      const length = /content-length: *(\d+)/i.exec(this.#text.slice(0, end))?.[1]
      this.#missing = Number(length) - (this.#text.length - end - headEnd.length)
    }
    if (this.#missing > 0) return
    this.#answer()
    this.#free()
  }

  #readStream(bytes: Buffer): void {
    if (!this.#isAnswered) {
      this.#text += bytes.toString('latin1')
      this.#checkStatus()
      if (this.#text.includes('data:')) this.#answer()
    }
    if (bytes.subarray(-bodyEnd.length).equals(bodyEnd)) this.#free()
  }

  #checkStatus(): void {
    if (!this.#text.startsWith('HTTP/1.1 200')) this.failed ??= new Error(this.#text)
  }

  #answer(): void {
    this.#isAnswered = true
    this.#latencies.push(performance.now() - this.#due)
  }
}
