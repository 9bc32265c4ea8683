/** Comments on idle streams to clients. A module loaded before the gateway makes its sweeps frequent. */
import { writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { useFixture, useFolder, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { mcpManifests } from '../support/mcp-client.ts'
import { modernHeaders, modernRequest } from '../support/mcp-modern-client.ts'
import { startOlderServer } from '../support/mcp-older-server.ts'

/** The interval of sweeps in the gateway, and the one in this test. */
const frequent = `
const original = globalThis.setInterval
globalThis.setInterval = (callback, ms, ...more) => original(callback, ms === 15_000 ? 50 : ms, ...more)
`
const module = join(useFolder('sluice-mcp-'), 'frequent.mjs')
writeFileSync(module, frequent)

const events = { 'content-type': 'text/event-stream' }
const json = { 'content-type': 'application/json' }

/** Calls that wait until the test finishes them. */
let waiting: (() => void)[] = []
/** Answers calls when the test says so, with a stream or with JSON. */
const server = useListening(
  createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const { id, method, params } = JSON.parse(body || '{}') as {
      id?: unknown
      method?: string
      params?: { name?: string }
    }
    if (id === undefined) response.writeHead(request.method === 'GET' ? 405 : 202).end()
    else if (method === 'initialize') {
      const serverInfo = { name: 'slow', version: '1' }
      const result = { protocolVersion: '2025-03-26', capabilities: { tools: {} }, serverInfo }
      response.writeHead(200, json).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    } else if (method === 'tools/call') answerLater(response, id, params?.name !== 'json')
    else {
      const error = { code: -32601, message: 'Method not found' }
      response.writeHead(200, json).end(JSON.stringify({ jsonrpc: '2.0', id, error }))
    }
  }),
)
const older = useFixture(startOlderServer)

function answerLater(response: ServerResponse, id: unknown, isStream: boolean): void {
  if (isStream) response.writeHead(200, events).flushHeaders()
  const answer = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } })
  waiting.push(() => {
    if (isStream) response.end(`data: ${answer}\n\n`)
    else response.writeHead(200, json).end(answer)
  })
}

const port = await freePort()
const target = (name: string, at: number, more: object = {}) => ({
  name,
  static: { host: '127.0.0.1', port: at, ...more },
})
useGateway(() => ({
  manifests: {
    'all.yaml': mcpManifests(port, {
      single: { targets: [target('slow', server.port)] },
      several: { targets: [target('slow', server.port), target('same', server.port)] },
      older: { targets: [target('older', older.port, { protocol: 'SSE' })] },
    }),
  },
  args: ['--workers', '1'],
  env: { NODE_OPTIONS: `--import=${pathToFileURL(module)}` },
}))

const accept = 'application/json, text/event-stream'
const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { ...json, accept, ...headers },
    body: JSON.stringify(body),
  })

async function begin(path: string): Promise<Record<string, string>> {
  const clientInfo = { name: 'raw', version: '1' }
  const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo }
  const answer = await post(path, { jsonrpc: '2.0', id: 0, method: 'initialize', params })
  await answer.text()
  return { 'mcp-session-id': answer.headers.get('mcp-session-id') ?? '' }
}

const call = (id: number, name: string) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: {} },
})

/** Reads a stream until it has three comments, then finishes all calls and reads the rest. */
async function readThrough(response: Response): Promise<string> {
  let text = ''
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece
    if (text.split(': \n\n').length > 3) for (const finish of waiting.splice(0)) finish()
  }
  return text
}

it.each([
  ['one server', '/single', (): object => call(1, 'wait')],
  ['one of several servers', '/several', () => call(1, 'slow_wait')],
  ['a batch', '/single', () => [call(1, 'wait'), call(2, 'wait')]],
])('sends comments while a call has no result: %s', async (_, path, body) => {
  waiting = []
  const text = await readThrough(await post(path, body(), await begin(path)))
  expect(text).toContain('"result":{"content":[]}')
})

it('sends comments while a translated call has no result', async () => {
  waiting = []
  const request = modernRequest('tools/call', { name: 'wait', arguments: {} })
  const response = await post('/single', request, modernHeaders(request))
  expect(await readThrough(response)).toContain('"resultType":"complete"')
})

it('sends comments while a server of the older transport has no result', async () => {
  const response = await post('/older', call(1, 'never'), await begin('/older'))
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (text.length < 12) text += (await reader?.read())?.value ?? ''
  expect(text).toBe(': \n\n'.repeat(text.length / 4))
  await reader?.cancel()
})

it('sends no comment into an answer that is JSON', async () => {
  waiting = []
  const answering = post('/single', call(1, 'json'), await begin('/single'))
  await expect.poll(() => waiting.length).toBe(1)
  // Sweeps send comments to another stream meanwhile.
  await readThrough(await post('/single', call(2, 'wait'), await begin('/single')))
  const answer = await answering
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(await answer.json()).toEqual({ jsonrpc: '2.0', id: 1, result: { content: [] } })
})
