/** Messages of revision 2026-07-28 that the gateway refuses before it asks a server. */
import { request as httpRequest } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { mcpManifests } from '../support/mcp-client.ts'
import { modernHeaders, modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'

const server = useModernServer()
const port = await freePort()
useGateway(() => ({
  manifests: {
    'all.yaml': mcpManifests(port, {
      one: { targets: [{ name: 'only', static: { host: '127.0.0.1', port: server.port } }] },
    }),
  },
}))
const url = `http://127.0.0.1:${port}/one`
const call = (id: string | number = 7) =>
  modernRequest('tools/call', { name: 'echo', arguments: {} }, { id })
const supported = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

/** Sends headers as they are, so that one may come twice. */
function sendRaw(headers: readonly string[], body: string): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(url, { method: 'POST', headers: headers as never }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve([response.statusCode ?? 0, text]))
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

let before = 0
beforeEach(() => {
  before = server.received.length
})
const expectNothingAsked = () => expect(server.received.length).toBe(before)

describe('headers and body of a modern message', () => {
  it.each([
    ['Mcp-Method is missing', { 'mcp-method': undefined }],
    ['Mcp-Method names another method', { 'mcp-method': 'tools/list' }],
    ['Mcp-Method has another case', { 'mcp-method': 'Tools/Call' }],
    ['Mcp-Name is missing', { 'mcp-name': undefined }],
    ['Mcp-Name names another tool', { 'mcp-name': 'other' }],
    ['Mcp-Name is invalid base64', { 'mcp-name': '=?base64?ZWNo*w==?=' }],
    ['Mcp-Name is base64 of no UTF-8', { 'mcp-name': '=?base64?/w==?=' }],
    ['Mcp-Name has base64 in another form', { 'mcp-name': '=?base64?ZWNobx==?=' }],
    ['Mcp-Name is not ASCII', { 'mcp-name': 'ech\u00f6' }],
    ['MCP-Protocol-Version is missing', { 'mcp-protocol-version': undefined }],
    ['MCP-Protocol-Version is another one', { 'mcp-protocol-version': '2025-11-25' }],
  ])('are refused with -32020 if %s', async (_, headers) => {
    const { status, message } = await sendModern(url, call('x'), { headers })
    expect(status).toBe(400)
    expect(message).toMatchObject({ id: 'x', error: { code: -32020 } })
    expectNothingAsked()
  })

  it.each(['mcp-method', 'mcp-name', 'mcp-protocol-version'])(
    'are refused with -32020 if %s comes twice, even with the same value',
    async (name) => {
      const message = call()
      const headers = Object.entries(modernHeaders(message))
      const twice = [...headers, [name, modernHeaders(message)[name] ?? '']]
      const [status, text] = await sendRaw(['host', 'x', ...twice.flat()], JSON.stringify(message))
      expect(status).toBe(400)
      expect(JSON.parse(text)).toMatchObject({ id: 7, error: { code: -32020 } })
      expectNothingAsked()
    },
  )

  it('agree if Mcp-Name is valid base64 of the name', async () => {
    const headers = { 'mcp-name': `=?base64?${Buffer.from('echo').toString('base64')}?=` }
    expect((await sendModern(url, call(), { headers })).status).toBe(200)
  })

  it('are refused if Mcp-Name names something that the body does not', async () => {
    const listed = modernRequest('tools/list')
    const { status, message } = await sendModern(url, listed, { headers: { 'mcp-name': 'echo' } })
    expect(status).toBe(400)
    expect(message).toMatchObject({ error: { code: -32020 } })
    expectNothingAsked()
  })

  it('are refused for initialize with the header of a modern version', async () => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} }
    const message = { jsonrpc: '2.0', id: 1, method: 'initialize', params }
    const answer = await sendModern(url, message)
    expect(answer.status).toBe(400)
    expect(answer.message).toMatchObject({ id: 1, error: { code: -32020 } })
    expectNothingAsked()
  })
})

describe('the envelope of a modern message', () => {
  const version = 'io.modelcontextprotocol/protocolVersion'
  const capabilities = 'io.modelcontextprotocol/clientCapabilities'
  const clientInfo = 'io.modelcontextprotocol/clientInfo'

  it.each([
    ['the capabilities are missing', { [capabilities]: undefined }],
    ['the capabilities are no object', { [capabilities]: [] }],
    ['the version is no string', { [version]: 20260728 }],
    ['the version is missing although the header is modern', { [version]: undefined }],
    ['the client has no version', { [clientInfo]: { name: 'x' } }],
  ])('is refused with -32602 if %s', async (_, meta) => {
    const message = modernRequest('tools/call', { name: 'echo' }, { id: 3, meta })
    const answer = await sendModern(url, message)
    expect(answer.status).toBe(400)
    expect(answer.message).toMatchObject({ id: 3, error: { code: -32602 } })
    expectNothingAsked()
  })

  it('is refused with -32602 if it is absent although the header is modern', async () => {
    const message = { jsonrpc: '2.0', id: 4, method: 'tools/call', params: { name: 'echo' } }
    const answer = await sendModern(url, message)
    expect(answer.status).toBe(400)
    expect(answer.message).toMatchObject({ id: 4, error: { code: -32602 } })
    expectNothingAsked()
  })

  it.each(['2099-01-01', '2025-11-25', 'x'])(
    'is refused with -32022 for version %s',
    async (one) => {
      const message = modernRequest('tools/list', {}, { id: 'v', meta: { [version]: one } })
      const answer = await sendModern(url, message, { headers: { 'mcp-protocol-version': one } })
      expect(answer.status).toBe(400)
      expect(answer.message).toMatchObject({
        id: 'v',
        error: {
          code: -32022,
          data: { supported: ['2026-07-28'], requested: one },
        },
      })
      expectNothingAsked()
    },
  )
})

describe('a modern message of an unusual shape', () => {
  const text = JSON.stringify(call())

  it.each([
    ['a key that comes twice', text.replace('"method"', '"method":"tools/list","method"'), -32700],
    ['a name that comes twice', text.replace('"name"', '"name":"other","name"'), -32700],
    ['a key in another case', text.replace('"name"', '"Name":"other","name"'), -32600],
    [
      'an envelope key in another case',
      text.replace('"_meta":{', '"_meta":{"io.modelcontextprotocol/ProtocolVersion":"x",'),
      -32600,
    ],
    ['a batch', `[${text}]`, -32600],
    ['a batch with a legacy message', `[{"jsonrpc":"2.0","id":1,"method":"ping"},${text}]`, -32600],
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{}}', -32600],
    ['a request without an id', text.replace('"id":7,', ''), -32600],
    ['text that is no JSON', text.slice(1), -32700],
  ])('is refused: %s', async (_, body, code) => {
    const answer = await sendModern(url, call(), { body })
    expect(answer.status).toBe(400)
    expect(answer.message).toMatchObject({ error: { code } })
    expectNothingAsked()
  })

  it.each([
    'initialize',
    'ping',
    'logging/setLevel',
    'resources/subscribe',
    'resources/unsubscribe',
    'tasks/list',
    'tasks/result',
  ])('is answered 404 with -32601 if its method %s was removed', async (method) => {
    const message = modernRequest(method, { uri: 'test://x', level: 'info' })
    const answer = await sendModern(url, message)
    expect(answer.status).toBe(404)
    expect(answer.message).toMatchObject({ id: 1, error: { code: -32601 } })
    expectNothingAsked()
  })

  it.each(['notifications/initialized', 'notifications/made-up'])(
    'is answered 404 if it is the notification %s, which no server gets',
    async (method) => {
      const { id: _, ...message } = modernRequest(method)
      const answer = await sendModern(url, message)
      expect(answer.status).toBe(404)
      expectNothingAsked()
    },
  )

  it('is accepted without an effect if it is notifications/cancelled', async () => {
    const { id: _, ...message } = modernRequest('notifications/cancelled', { requestId: 1 })
    expect((await sendModern(url, message)).status).toBe(202)
    expectNothingAsked()
  })
})

describe('other HTTP methods', () => {
  it.each(['GET', 'DELETE'])('%s is answered 405 in the modern era', async (method) => {
    const headers = { 'mcp-protocol-version': '2026-07-28', accept: 'text/event-stream' }
    const response = await fetch(url, { method, headers })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('POST')
    expectNothingAsked()
  })
})

describe('a legacy message to the same address', () => {
  it('with an unknown version in its header is refused with -32022 and the supported versions', async () => {
    const message = { jsonrpc: '2.0', id: 9, method: 'tools/list' }
    const headers = { 'mcp-protocol-version': '1999-01-01', 'mcp-session-id': 'x' }
    const answer = await sendModern(url, message, { headers })
    expect(answer.status).toBe(400)
    expect(answer.message).toMatchObject({
      id: 9,
      error: { code: -32022, data: { supported: expect.arrayContaining(supported) } },
    })
    expectNothingAsked()
  })

  it('needs a session', async () => {
    const message = { jsonrpc: '2.0', id: 9, method: 'tools/list' }
    const headers = { 'mcp-protocol-version': undefined, 'mcp-method': undefined }
    const answer = await sendModern(url, message, { headers })
    expect(answer.status).toBe(400)
  })
})
