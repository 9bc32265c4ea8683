/** MCP servers that close a kept-alive connection as the next message arrives. */
import { createServer } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { mcpManifests, rawSession } from '../support/mcp-client.ts'

interface Received {
  readonly id?: number
  readonly method: string
}

/** The methods that the server has received, in order. */
const received: string[] = []
/** The server closes the connection on which it receives this method, once. */
let closesAt: string | undefined

const http = createServer(async (request, response) => {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  if (request.method !== 'POST') {
    response.writeHead(405).end()
    return
  }
  const { id, method } = JSON.parse(text) as Received
  received.push(method)
  if (method === closesAt) {
    closesAt = undefined
    request.socket.destroy()
    return
  }
  response.sendDate = false
  response.setHeader('content-type', 'application/json')
  if (id === undefined) {
    response.writeHead(202).end()
    return
  }
  const result =
    method === 'initialize'
      ? {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {}, resources: {}, prompts: {} },
          serverInfo: { name: 'closing', version: '1' },
        }
      : { tools: [], contents: [], messages: [], content: [] }
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
})
const server = useListening(http)
const port = await freePort()
useGateway(() => ({
  manifests: {
    'all.yaml': mcpManifests(port, {
      mcp: { targets: [{ name: 'one', static: { host: '127.0.0.1', port: server.port } }] },
    }),
  },
  args: ['--workers', '1'],
}))
beforeEach(() => {
  closesAt = undefined
  received.length = 0
})

describe('a server that closes the connection', () => {
  it.each([
    ['tools/list', {}],
    ['ping', {}],
    ['resources/read', { uri: 'file:///a' }],
    ['prompts/get', { name: 'a' }],
  ])('gets %s again on another connection', async (method, params) => {
    const session = await rawSession(port, '/mcp')
    received.length = 0
    closesAt = method
    const { status, message } = await session.send(port, {
      jsonrpc: '2.0',
      id: 1,
      method,
      params,
    })
    expect([status, received]).toEqual([200, [method, method]])
    expect(message).toMatchObject({ id: 1, result: {} })
  })

  it('gets no tool call twice, because the tool may have run', async () => {
    const session = await rawSession(port, '/mcp')
    received.length = 0
    closesAt = 'tools/call'
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a' } }
    expect((await session.send(port, call)).status).toBe(503)
    expect(received).toEqual(['tools/call'])
  })
})
