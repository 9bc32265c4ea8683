/** Clients that mark each request with a tag and check that everything they receive carries that tag. */
import { Agent, type IncomingMessage, request as requestHttp1 } from 'node:http'
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2'
import {
  type Shape,
  shapes,
  taggedBody,
  taggedFields,
  tagsIn,
} from '../../support/tagged-upstream.ts'

/** Everything that a client received for one request. */
interface Received {
  readonly status: number
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: string
  /** Interim responses and trailers, as text. */
  readonly others: string
}

interface Asked {
  readonly port: number
  readonly host: string
  readonly tag: string
  readonly shape: Shape
  readonly method: string
}

/** Sends tagged requests over kept connections of both versions of HTTP. */
export class TaggedClients {
  readonly #agent = new Agent({ keepAlive: true })
  readonly #sessions = new Map<number, ClientHttp2Session>()
  #count = 0

  /** Sends `count` requests, `parallel` at a time. Returns a line for each of the first wrong responses. */
  async run(port: number, host: string, count: number, parallel: number): Promise<string[]> {
    const wrong: string[] = []
    let begun = 0
    const worker = async (index: number) => {
      while (begun < count && wrong.length < enough) {
        const shape = shapes[begun++ % shapes.length] ?? 'small'
        const asked = {
          port,
          host,
          shape,
          tag: `tag-${++this.#count}-`,
          method: this.#count % 11 === 0 ? 'HEAD' : this.#count % 3 === 0 ? 'POST' : 'GET',
        }
        const version = index % 3 === 0 ? this.#overHttp2(asked) : this.#overHttp1(asked)
        const problem = await inTime(version).then(
          (received) => problemOf(asked, received),
          (error: unknown) => String(error),
        )
        if (problem !== undefined) wrong.push(`${asked.tag} ${asked.method} ${shape}: ${problem}`)
      }
    }
    await Promise.all(Array.from({ length: parallel }, (_, index) => worker(index)))
    return wrong
  }

  #overHttp1({ port, host, tag, shape, method }: Asked): Promise<Received> {
    return new Promise((resolve, reject) => {
      let others = ''
      const headers = { host, 'x-tag': tag, 'x-shape': shape, te: 'trailers' }
      const path = `/${tag}`
      const options = { host: '127.0.0.1', port, method, path, headers, agent: this.#agent }
      const sent = requestHttp1(options, (response: IncomingMessage) => {
        let body = ''
        response.setEncoding('latin1')
        response.on('data', (piece: string) => {
          body += piece
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
      })
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

  #overHttp2({ port, host, tag, shape, method }: Asked): Promise<Received> {
    return new Promise((resolve, reject) => {
      let status = 0
      let others = ''
      let body = ''
      const fields: [string, string][] = []
      const head = { ':method': method, ':path': `/${tag}`, ':authority': host }
      const stream = this.#session(port).request({ ...head, 'x-tag': tag, 'x-shape': shape })
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
      stream.on('end', () => resolve({ status, fields, body, others }))
      stream.end(method === 'POST' ? tag.repeat(20) : undefined)
    })
  }

  #session(port: number): ClientHttp2Session {
    const kept = this.#sessions.get(port)
    if (kept !== undefined && !kept.closed && !kept.destroyed) return kept
    const session = connect(`http://127.0.0.1:${port}`)
    session.on('error', () => {})
    this.#sessions.set(port, session)
    return session
  }

  close(): void {
    this.#agent.destroy()
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
  'trailer',
  'transfer-encoding',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-request-id',
  'x-served-by',
  'x-set',
])

function problemOf({ tag, shape, method }: Asked, received: Received): string | undefined {
  const { status, fields, body, others } = received
  const text = `${JSON.stringify(fields)}${body}${others}`
  const foreign = tagsIn(text).filter((found) => found !== tag)
  if (foreign.length > 0) return `carries ${foreign.join(' ')}`
  if (status !== (statuses[shape] ?? 200)) return `status ${status} ${body.slice(0, 80)}`
  const expected = method === 'HEAD' ? '' : taggedBody(tag, shape)
  if (body !== expected) return `body of ${body.length} in place of ${expected.length} bytes`
  const wanted = taggedFields(tag)
  for (const [name, value] of Object.entries(wanted)) {
    const found = fields.filter(([given]) => given === name).map(([, given]) => given)
    if (found.join() !== value) return `${name} is ${found.join() || 'absent'}`
  }
  const strange = fields.find(([name]) => !(name in wanted) && !gatewayFields.has(name))
  return strange && `has the field ${strange.join(': ')}`
}
