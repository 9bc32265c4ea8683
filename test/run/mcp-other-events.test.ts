/** Servers whose streams have events with other names than `message`, and requests with doubtful headers and ids. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request as send } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import { beforeEach, describe, expect, it } from 'vitest'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { policy } from '../support/manifests.ts'
import { mcpManifests, rawSession } from '../support/mcp-client.ts'

interface Received {
  readonly id?: number
  readonly method: string
}

/** Name of the event with the response to `tools/list`. */
let eventName = 'message'
/** The id in responses. */
let writesId = (id: number): string => `${id}`

const http = createServer(async (request, response) => {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  if (text === '') {
    response.writeHead(request.method === 'GET' ? 405 : 200).end()
    return
  }
  const { id, method } = JSON.parse(text) as Received
  if (id === undefined) {
    response.writeHead(202).end()
    return
  }
  const result =
    method === 'initialize'
      ? {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'loose', version: '1' },
        }
      : { tools: [{ name: 'echo' }, { name: 'secret' }] }
  if (method === 'initialize') response.setHeader('mcp-session-id', 's')
  const data = `{"jsonrpc":"2.0","id":${writesId(id)},"result":${JSON.stringify(result)}}`
  const name = method === 'tools/list' ? eventName : 'message'
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(`event: ${name}\ndata: ${data}\n\n`)
})
const server = useListening(http)
const port = await freePort()
useGateway(() => {
  const targets = [{ name: 'one', static: { host: '127.0.0.1', port: server.port } }]
  const rules = {
    authorization: { action: 'Allow', policy: { matchExpressions: ['mcp.tool.name == "echo"'] } },
  }
  const others = [policy('rules', 'GatewayBackend/ruled', { backend: { mcp: rules } })]
  return { manifests: { 'all.yaml': mcpManifests(port, { ruled: { targets } }, others) } }
})
beforeEach(() => {
  eventName = 'message'
  writesId = (id) => `${id}`
})

const headers = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}

async function post(body: string, ...more: readonly (readonly [string, string])[]) {
  const response = await fetch(`http://127.0.0.1:${port}/ruled`, {
    method: 'POST',
    headers: [...Object.entries(headers), ...more].map(([name, value]) => [name, value]),
    body,
  })
  return { status: response.status, text: await response.text() }
}

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'raw', version: '1' },
  },
}

async function sessionId(): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/ruled`, {
    method: 'POST',
    headers,
    body: JSON.stringify(initialize),
  })
  await response.text()
  return response.headers.get('mcp-session-id') ?? ''
}

const list = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`

describe('an event that is not named message', () => {
  it.each(['error', 'zork', 'ping', 'endpoint'])(
    'gives clients no items that they may not use (%s)',
    async (name) => {
      eventName = name
      const { text } = await post(list('1'), ['mcp-session-id', await sessionId()])
      expect(text).not.toContain('secret')
      expect(text).toContain('-32603')
    },
  )

  it('is what differs: a message of the same server is filtered', async () => {
    const session = await rawSession(port, '/ruled')
    const { message } = await session.send(port, JSON.parse(list('1')) as object)
    expect(message).toMatchObject({ result: { tools: [{ name: 'echo' }] } })
  })
})

describe('ids of requests', () => {
  it.each([
    ['1e2', '100'],
    ['-0', '0'],
    ['9007199254740993', '9007199254740992'],
    ['2.5', '2.5'],
  ])('may be %s, although the server writes it as %s', async (sent, written) => {
    const session = await sessionId()
    writesId = () => written
    const { status, text } = await post(list(sent), ['mcp-session-id', session])
    expect(status).toBe(200)
    expect(text).toContain(`"id":${sent},`)
    expect(text).toContain('echo')
  })
})

describe('headers', () => {
  it('with two different sessions are refused', async () => {
    const sessions = [await sessionId(), 'other']
    // fetch would join the lines.
    const twice = { ...headers, 'mcp-session-id': sessions }
    const request = send({ port, path: '/ruled', method: 'POST', headers: twice }).end(list('1'))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    expect(response.statusCode).toBe(400)
    expect(await textOf(response)).toContain('more than one header Mcp-Session-Id')
  })

  it('with a version that does not exist are refused with the versions that do', async () => {
    for (const version of ['1', '2099-01-01']) {
      const { status, text } = await post(list('1'), ['mcp-protocol-version', version])
      expect(status).toBe(400)
      expect(JSON.parse(text)).toMatchObject({
        error: { code: -32022, data: { requested: version } },
      })
    }
  })
})
