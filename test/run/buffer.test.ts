/** `traffic.buffer`: bodies are held until they are complete, up to a limit. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const port = await freePort()
/** Heads of requests as they arrive, and what the next response sends before it waits for `release`. */
const arrived: { headers: IncomingHttpHeaders; body: string }[] = []
let release: (() => void) | undefined

const upstream = useListening(
  createServer((incoming, outgoing) => {
    const seen = { headers: incoming.headers, body: '' }
    arrived.push(seen)
    incoming.on('data', (bytes) => {
      seen.body += bytes
    })
    incoming.once('end', () => {
      outgoing.write(incoming.url === '/long' ? 'x'.repeat(64) : 'first ')
      if (incoming.url === '/') outgoing.end('last')
      else release = () => outgoing.end('last')
    })
  }),
)

const policies = {
  closed: { request: { maxBytes: 32 }, response: { maxBytes: 32 } },
  open: {
    request: { maxBytes: 32, failureMode: 'FailOpen' },
    response: { maxBytes: 32, failureMode: 'FailOpen' },
  },
  default: { request: {}, response: {} },
  some: {
    conditional: [
      { condition: 'request.headers["x-hold"] == "yes"', policy: { request: { maxBytes: 8 } } },
    ],
  },
} as const
type Name = keyof typeof policies
const names = Object.keys(policies) as Name[]

const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    ...names.map((name) =>
      httpRoute(name, {
        hostnames: [`${name}.example.com`],
        rules: [{ backendRefs: [toBackend('main')] }],
      }),
    ),
    ...names.map((name) =>
      policy(name, `HTTPRoute/${name}`, { traffic: { buffer: policies[name] } }),
    ),
  ],
}))

interface Asked {
  readonly headers?: Readonly<Record<string, string>>
  readonly path?: string
}

/** Starts a chunked POST, of which the test sends the parts. */
function post(name: Name, { headers = {}, path = '/' }: Asked = {}) {
  const host = `${name}.example.com`
  const outgoing = request({ port, path, method: 'POST', headers: { host, ...headers } })
  outgoing.on('error', () => undefined)
  outgoing.flushHeaders()
  const response = once(outgoing, 'response') as Promise<[IncomingMessage]>
  response.catch(() => undefined)
  return { outgoing, response }
}

async function read(message: IncomingMessage): Promise<string> {
  let text = ''
  for await (const bytes of message) text += bytes
  return text
}

describe('traffic.buffer', () => {
  it('holds a request until its body is complete, and a response too', async () => {
    const before = arrived.length
    const { outgoing, response } = post('closed', { path: '/slow' })
    outgoing.write('a')
    // Another request passes while this one is held.
    const other = post('closed')
    other.outgoing.end('b')
    await read((await other.response)[0])
    expect(arrived.slice(before).map(({ body }) => body)).toEqual(['b'])
    outgoing.end('c')
    await waitFor('the request', async () => arrived[before + 1])
    expect(arrived[before + 1]?.headers).toMatchObject({ 'content-length': '2' })
    await waitFor('the start of the response', async () => release)
    let isAnswered = false
    void response.then(() => {
      isAnswered = true
    })
    const after = post('default')
    after.outgoing.end()
    await read((await after.response)[0])
    expect(isAnswered).toBe(false)
    release?.()
    const [message] = await response
    expect(message.headers).toMatchObject({ 'content-length': '10' })
    expect(await read(message)).toBe('first last')
  })

  it.each(['known', 'unknown'])(
    'refuses a request with a body that is too large: its length is %s',
    async (length) => {
      const before = arrived.length
      const headers: Record<string, string> = length === 'known' ? { 'content-length': '40' } : {}
      const { outgoing, response } = post('closed', { headers })
      outgoing.write('x'.repeat(40))
      const [message] = await response
      expect(message.statusCode).toBe(413)
      expect(await read(message)).toBe('request body too large')
      outgoing.end()
      expect(arrived).toHaveLength(before)
    },
  )

  it('refuses a response that is too large, without its beginning', async () => {
    const { outgoing, response } = post('closed', { path: '/long' })
    outgoing.end()
    const [message] = await response
    expect(message.statusCode).toBe(502)
    expect(message.headers['proxy-status']).toContain('error=http_response_body_size')
    expect(await read(message)).toBe('response body too large')
    release?.()
  })

  it('forwards larger bodies as they arrive with FailOpen', async () => {
    const before = arrived.length
    const { outgoing, response } = post('open', { path: '/long' })
    outgoing.write('y'.repeat(40))
    await waitFor('the request', async () => arrived[before]?.body)
    outgoing.end('z')
    const [message] = await response
    expect(message.statusCode).toBe(200)
    await waitFor('the response', async () => release)
    release?.()
    expect(await read(message)).toBe(`${'x'.repeat(64)}last`)
    expect(arrived[before]?.body).toBe(`${'y'.repeat(40)}z`)
  })

  it('holds only requests that meet the condition of a variant', async () => {
    const held = post('some', { headers: { 'x-hold': 'yes' } })
    held.outgoing.end('123456789')
    expect((await held.response)[0].statusCode).toBe(413)
    const streamed = post('some')
    streamed.outgoing.end('123456789')
    expect((await streamed.response)[0].statusCode).toBe(200)
  })

  it('lets requests without a body pass', async () => {
    const { status, body } = await running.send(port, { host: 'default.example.com' })
    expect([status, body]).toEqual([200, 'first last'])
  })
})
