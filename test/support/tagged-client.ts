/** Clients that mark each request with a tag and check that everything they receive carries that tag. */
import { Agent, type IncomingMessage, request as requestHttp1 } from 'node:http'
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2'
import { request as requestSecure, Agent as SecureAgent } from 'node:https'
import { Agent as UndiciAgent } from 'undici'
import { type Shape, shapes, taggedBody, taggedFields, tagsIn } from './tagged-upstream.ts'

/** Everything that a client received for one request. */
interface Received {
  readonly status: number
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: string
  /** Interim responses and trailers, as text. */
  readonly others: string
}

export interface Asked {
  readonly port: number
  readonly host: string
  readonly tag: string
  readonly shape: Shape
  readonly method: 'GET' | 'HEAD' | 'POST'
  /** More fields of the request. */
  readonly fields?: Readonly<Record<string, string>>
  /** Connects over TLS, and accepts any certificate. */
  readonly isSecure?: boolean
  /** How long Node's client of HTTP/1.1 pauses after each piece of the body. */
  readonly pauseMs?: number
}

/** What is not as it must be with a response. */
export interface Problem {
  /** `failed`: the request has no whole response, or an error in its place. `wrong`: bytes that must never come. */
  readonly kind: 'failed' | 'wrong'
  readonly text: string
  /** What was received. */
  readonly received: string
}

export const clientNames = ['http1', 'http2', 'undici'] as const
export type ClientName = (typeof clientNames)[number]

/** One name for all hosts, so that connections are kept for requests to any of them. */
const tls = { rejectUnauthorized: false, servername: 'tagged.example.com' }

const originOf = ({ port, isSecure }: Asked): string =>
  `${isSecure === true ? 'https' : 'http'}://127.0.0.1:${port}`

/** Sends tagged requests over kept connections: with Node's clients of both versions of HTTP, and with undici. */
export class TaggedClients {
  readonly #agent = new Agent({ keepAlive: true })
  readonly #secureAgent = new SecureAgent({ keepAlive: true, ...tls })
  readonly #undici = new UndiciAgent({ connections: 16, pipelining: 1, connect: tls })
  readonly #sessions = new Map<string, ClientHttp2Session>()
  #count = 0

  /** Sends `count` requests, `parallel` at a time. Returns a line for each of the first wrong responses. */
  async run(port: number, host: string, count: number, parallel: number): Promise<string[]> {
    const wrong: string[] = []
    let begun = 0
    const worker = async (index: number) => {
      while (begun < count && wrong.length < enough) {
        const shape = shapes[begun++ % shapes.length] ?? 'small'
        const asked: Asked = {
          port,
          host,
          shape,
          tag: `tag-${++this.#count}-`,
          method: this.#count % 11 === 0 ? 'HEAD' : this.#count % 3 === 0 ? 'POST' : 'GET',
        }
        const problem = await this.ask(asked, clientNames[(index + 1) % clientNames.length])
        if (problem === undefined) continue
        wrong.push(`${asked.tag} ${asked.method} ${shape}: ${problem.text}`)
      }
    }
    await Promise.all(Array.from({ length: parallel }, (_, index) => worker(index)))
    return wrong
  }

  /** Sends one request. Returns undefined if the response is as it must be. */
  ask(asked: Asked, client: ClientName = 'http1'): Promise<Problem | undefined> {
    const received = {
      http1: () => this.#overHttp1(asked),
      http2: () => this.#overHttp2(asked),
      undici: () => this.#overUndici(asked),
    }[client]()
    return inTime(received).then(
      (whole) => problemOf(asked, whole),
      (error: unknown): Problem => ({ kind: 'failed', text: String(error), received: '' }),
    )
  }

  async #overUndici(asked: Asked): Promise<Received> {
    const { host, tag, shape, method, fields: more } = asked
    let others = ''
    const { statusCode, headers, body, trailers } = await this.#undici.request({
      origin: originOf(asked),
      path: `/${tag}`,
      method,
      headers: { host, 'x-tag': tag, 'x-shape': shape, ...more },
      body: method === 'POST' ? tag.repeat(20) : null,
      onInfo: (info) => {
        others += JSON.stringify(info.headers)
      },
    })
    const text = Buffer.from(await body.arrayBuffer()).toString('latin1')
    others += JSON.stringify(trailers)
    const fields = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
    return { status: statusCode, fields, body: text, others }
  }

  #overHttp1(asked: Asked): Promise<Received> {
    const { port, host, tag, shape, method, fields: more, pauseMs, isSecure = false } = asked
    return new Promise((resolve, reject) => {
      let others = ''
      const headers = { host, 'x-tag': tag, 'x-shape': shape, te: 'trailers', ...more }
      const path = `/${tag}`
      const agent = isSecure ? this.#secureAgent : this.#agent
      const options = { host: '127.0.0.1', port, method, path, headers, agent, ...tls }
      const sent = (isSecure ? requestSecure : requestHttp1)(
        options,
        (response: IncomingMessage) => {
          let body = ''
          response.setEncoding('latin1')
          response.on('data', (piece: string) => {
            body += piece
            if (pauseMs === undefined) return
            response.pause()
            setTimeout(() => response.resume(), pauseMs)
          })
          response.on('error', reject)
          response.on('end', () => {
            const { rawHeaders: raw } = response
            const fields = raw.flatMap((name, at) =>
              at % 2 === 0 ? [[name.toLowerCase(), raw[at + 1] ?? ''] as const] : [],
            )
            others += response.rawTrailers.join(' ')
            resolve({ status: response.statusCode ?? 0, fields, body, others })
          })
        },
      )
      sent.on('information', (info) => {
        others += info.rawHeaders.join(' ')
      })
      sent.on('error', reject)
      if (method === 'POST' && shape === 'trailers') {
        sent.setHeader('trailer', 'x-sent')
        sent.write(tag)
        sent.addTrailers({ 'x-sent': tag })
      }
      sent.end(method === 'POST' ? tag.repeat(20) : undefined)
    })
  }

  #overHttp2(asked: Asked): Promise<Received> {
    const { host, tag, shape, method, fields: more } = asked
    return new Promise((resolve, reject) => {
      let status = 0
      let others = ''
      let body = ''
      const fields: [string, string][] = []
      const head = { ':method': method, ':path': `/${tag}`, ':authority': host }
      const own = { 'x-tag': tag, 'x-shape': shape, ...more }
      const stream = this.#session(originOf(asked)).request({ ...head, ...own })
      stream.setEncoding('latin1')
      stream.on('headers', (interim: IncomingHttpHeaders) => {
        others += JSON.stringify(interim)
      })
      stream.on('response', (received) => {
        status = received[':status'] ?? 0
        for (const [name, value] of Object.entries(received)) {
          if (!name.startsWith(':')) fields.push([name, String(value)])
        }
      })
      stream.on('trailers', (trailers) => {
        others += JSON.stringify(trailers)
      })
      stream.on('data', (piece: string) => {
        body += piece
      })
      stream.on('error', reject)
      // A connection that ends early ends its streams without an error, but with the code CANCEL.
      stream.on('end', () => {
        if (stream.rstCode === 0) resolve({ status, fields, body, others })
        else reject(new Error(`the stream ended with code ${stream.rstCode}`))
      })
      stream.end(method === 'POST' ? tag.repeat(20) : undefined)
    })
  }

  #session(origin: string): ClientHttp2Session {
    const kept = this.#sessions.get(origin)
    if (kept !== undefined && !kept.closed && !kept.destroyed) return kept
    const session = connect(origin, tls)
    session.on('error', () => {})
    this.#sessions.set(origin, session)
    return session
  }

  close(): void {
    this.#agent.destroy()
    this.#secureAgent.destroy()
    void this.#undici.destroy()
    for (const session of this.#sessions.values()) session.destroy()
  }
}

/** Number of wrong responses after which no more requests are sent. */
const enough = 5
/** Maximum time for one response in milliseconds. */
const patienceMs = 30_000

function inTime(received: Promise<Received>): Promise<Received> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('no whole response in time')), patienceMs)
    received.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

const statuses: Readonly<Partial<Record<Shape, number>>> = { empty: 204, refused: 409 }

/** Names that a response may have besides those of the upstream. */
const gatewayFields = new Set([
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'server',
  'trailer',
  'transfer-encoding',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-request-id',
  'x-served-by',
  'x-set',
])

function problemOf({ tag, shape, method }: Asked, received: Received): Problem | undefined {
  const { status, fields, body, others } = received
  const text = `${JSON.stringify(fields)}${body}${others}`
  const problem = (kind: Problem['kind'], what: string) => ({ kind, text: what, received: text })
  const foreign = tagsIn(text).filter((found) => found !== tag)
  if (foreign.length > 0) return problem('wrong', `carries ${foreign.join(' ')}`)
  if (status !== (statuses[shape] ?? 200)) {
    return problem('failed', `status ${status} ${body.slice(0, 80)}`)
  }
  const expected = method === 'HEAD' ? '' : taggedBody(tag, shape)
  if (body !== expected) {
    return problem('wrong', `body of ${body.length} in place of ${expected.length} bytes`)
  }
  const wanted = taggedFields(tag)
  for (const [name, value] of Object.entries(wanted)) {
    const found = fields.filter(([given]) => given === name).map(([, given]) => given)
    if (found.join() !== value) return problem('wrong', `${name} is ${found.join() || 'absent'}`)
  }
  const strange = fields.find(([name]) => !(name in wanted) && !gatewayFields.has(name))
  return strange && problem('wrong', `has the field ${strange.join(': ')}`)
}
