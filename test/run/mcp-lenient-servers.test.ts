/** Servers that read the protocol loosely, and clients that describe themselves at length. */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, it } from 'vitest'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { mcpManifests, rawSession } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'

interface Received {
  readonly id?: number
  readonly method: string
  readonly params?: Readonly<Record<string, unknown>>
}

/** How the server writes the id of its answers. */
let writesId = (id: number): string => `${id}`
/** Cursors of the pages that the server gives, by the cursor that it gets. */
let nextCursor = (_cursor: unknown): string | undefined => undefined
let isCompressing = false
const received: { headers: IncomingHttpHeaders; message: Received }[] = []
/** Added to the session ids of the server. */
let padding = ''

const http = createServer(async (request, response) => {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  if (text === '') {
    received.push({ headers: request.headers, message: { method: request.method ?? '' } })
    response.writeHead(request.method === 'GET' ? 405 : 200).end()
    return
  }
  const message = JSON.parse(text) as Received
  received.push({ headers: request.headers, message })
  const { id, method, params } = message
  if (id === undefined) {
    response.writeHead(202).end()
    return
  }
  const next = nextCursor(params?.cursor)
  const result =
    method === 'initialize'
      ? {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'loose', version: '1' },
        }
      : { tools: [{ name: 'who' }], content: [], ...(next !== undefined && { nextCursor: next }) }
  if (method === 'initialize') response.setHeader('mcp-session-id', `s${padding}`)
  response.setHeader('content-type', 'application/json')
  const body = `{"jsonrpc":"2.0","id":${writesId(id)},"result":${JSON.stringify(result)}}`
  const accepted = request.headers['accept-encoding']
  if (isCompressing && (accepted === undefined || /gzip|\*/.test(accepted))) {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(body))
  } else response.end(body)
})
const server = useListening(http)
/** A modern server that writes number ids as strings. */
const modern = useModernServer({
  answers: {
    'tools/call': ({ id }, { send, end }) => {
      const result = { resultType: 'complete', content: [] }
      send({ jsonrpc: '2.0', id: String(id), result })
      end()
      return undefined
    },
    'subscriptions/listen': ({ id }, { send, end }) => {
      send({ jsonrpc: '2.0', id: String(id), error: { code: -32602, message: 'not now' } })
      end()
      return undefined
    },
  },
})
const port = await freePort()
useGateway(() => {
  const target = (name: string) => ({ name, static: { host: '127.0.0.1', port: server.port } })
  return {
    manifests: {
      'all.yaml': mcpManifests(port, {
        single: { targets: [target('one')] },
        pair: { targets: [target('one'), target('two')] },
        modern: { targets: [{ name: 'one', static: { host: '127.0.0.1', port: modern.port } }] },
      }),
    },
  }
})
beforeEach(() => {
  writesId = (id) => `${id}`
  nextCursor = () => undefined
  isCompressing = false
  padding = ''
  received.length = 0
})

const list = (cursor?: string) => ({
  jsonrpc: '2.0',
  id: 13,
  method: 'tools/list',
  params: cursor === undefined ? {} : { cursor },
})

async function initialize(path: string, clientInfo: Readonly<Record<string, unknown>>) {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }),
  })
  const body = (await response.json()) as Readonly<Record<string, unknown>>
  return { status: response.status, id: response.headers.get('mcp-session-id'), body }
}

describe.each(['/single', '/pair'])('a loose server behind %s', (path) => {
  const names = path === '/single' ? ['who'] : ['one_who', 'two_who']
  const tools = names.map((name) => ({ name }))

  it.each([
    ['as a string', (id: number) => `"${id}"`],
    ['with a fraction of zero', (id: number) => `${id}.0`],
  ])('may write number ids %s, and clients get the id that they sent', async (_, write) => {
    writesId = write
    const session = await rawSession(port, path)
    const { message } = await session.send(port, list())
    expect(message).toMatchObject({ id: 13, result: { tools } })
  })

  it('is asked not to compress', async () => {
    isCompressing = true
    const session = await rawSession(port, path)
    expect((await session.send(port, list())).message).toMatchObject({ result: { tools } })
    const codings = received.map(({ headers }) => headers['accept-encoding'])
    expect([...new Set(codings)]).toEqual(['identity'])
  })

  it('gets decorations of clients, which session ids do not contain', async () => {
    const icons = [{ src: `data:image/png;base64,${randomText(20_000)}` }]
    const { status, id } = await initialize(path, { name: 'ide', version: '1', icons })
    expect(status).toBe(200)
    expect(id?.length).toBeLessThan(1_000)
    expect(received[0]?.message.params?.clientInfo).toMatchObject({ icons })
  })

  it('gets no session if its id would be too long for the clients', async () => {
    padding = randomText(8_000)
    const { status, id, body } = await initialize(path, { name: 'ide', version: '1' })
    expect([status, id]).toEqual([400, null])
    const message = expect.stringMatching(/^The session id would have \d+ characters, more than/)
    expect(body).toMatchObject({ id: 0, error: { code: -32602, message } })
    await expect.poll(() => received.at(-1)?.message.method).toBe('DELETE')
  })
})

describe('a modern server that writes number ids as strings', () => {
  it('serves calls of legacy clients', async () => {
    const session = await rawSession(port, '/modern')
    const params = { name: 'who', arguments: {} }
    const request = { jsonrpc: '2.0', id: 13, method: 'tools/call', params }
    const { message } = await session.send(port, request)
    expect(message).toMatchObject({ id: 13, result: { content: [] } })
  })

  it('may refuse a subscription', async () => {
    const params = { notifications: { toolsListChanged: true } }
    const request = modernRequest('subscriptions/listen', params, { id: 13 })
    const { message } = await sendModern(`http://127.0.0.1:${port}/modern`, request)
    expect(message).toMatchObject({ id: 13, error: { code: -32602, message: 'not now' } })
  })
})

describe('joined lists', () => {
  const cursorOf = (message: unknown) =>
    (message as { result: { nextCursor?: string } }).result.nextCursor

  it('end at an empty cursor', async () => {
    nextCursor = () => ''
    const session = await rawSession(port, '/pair')
    expect(cursorOf((await session.send(port, list())).message)).toBeUndefined()
  })

  it('end at a server that repeats the cursor it gets', async () => {
    nextCursor = () => 'same'
    const session = await rawSession(port, '/pair')
    const cursor = cursorOf((await session.send(port, list())).message)
    expect(cursor).toEqual(expect.any(String))
    expect(cursorOf((await session.send(port, list(cursor))).message)).toBeUndefined()
  })
})

/** Text that does not compress. */
function randomText(length: number): string {
  return randomBytes(length).toString('base64url').slice(0, length)
}
