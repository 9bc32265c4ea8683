/** Servers that close a stream before the response, so that the rest is asked for later (SEP-1699). */
import { createServer, type ServerResponse } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { beforeEach, describe, expect, it } from 'vitest'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { connectClient, mcpManifests, rawSession } from '../support/mcp-client.ts'
import {
  modernHeaders,
  modernRequest,
  openModern,
  sendModern,
} from '../support/mcp-modern-client.ts'
import { OrderedEventStore, useMcpServer } from '../support/mcp-server.ts'

const events = { 'content-type': 'text/event-stream' }
const json = { 'content-type': 'application/json' }
/** What the server wants the gateway to wait before it asks for the rest. */
const retry = 120

interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly name?: string; readonly protocolVersion?: string }
}

/** How many GETs of each stream give nothing before one gives the response. */
let polls = 1
/** Status with which the server refuses GETs; 200 if it does not. */
let refusal = 200
/** Is there a stream for messages without a request, which is polled as well? */
let hasOwnStream = false
/** Do streams that GETs open begin with an event? */
let hasEvents = true
/** Methods whose streams are closed early. */
let polled = new Set<string>()
/** What the server asks the client before it closes the stream of a call. */
let question: object | undefined
/** GETs, with the times since the end of the stream before. */
let gets: { last: string; session: string | undefined; waited: number }[] = []
/** Methods of all messages, and `DELETE session`. */
let received: string[] = []

beforeEach(() => {
  polls = 1
  refusal = 200
  hasEvents = true
  hasOwnStream = false
  polled = new Set(['tools/call'])
  question = undefined
  gets = []
  received = []
})

/** Streams by number: the response, and how many GETs there were. */
const streams = new Map<number, { answer: string; asked: number; endedAt: number }>()
let hasAnswer = true
let sessions = 0

const resultOf = ({ method, params }: Message): object => {
  if (method === 'initialize') {
    const serverInfo = { name: 'polled', version: '1' }
    const capabilities = { tools: { listChanged: true } }
    return { protocolVersion: params?.protocolVersion, capabilities, serverInfo }
  }
  if (method === 'tools/list') return { tools: [{ name: 'wait', inputSchema: { type: 'object' } }] }
  return { content: [{ type: 'text', text: `${params?.name} is done` }] }
}

function poll(response: ServerResponse, answer: string, asked: object | undefined): void {
  const number = streams.size + 1
  streams.set(number, { answer, asked: 0, endedAt: performance.now() })
  response.write(`id: ${number}-0\nretry: ${retry}\ndata: \n\n`)
  const text = JSON.stringify({ jsonrpc: '2.0', id: 'question', ...asked })
  response.end(asked && `id: ${number}-1\ndata: ${text}\n\n`)
}

function serveGet(last: string, session: string | undefined, response: ServerResponse): void {
  if (last === 'undefined' && hasOwnStream) {
    const method = 'notifications/tools/list_changed'
    const answer = JSON.stringify({ jsonrpc: '2.0', method })
    const number = streams.size + 1
    streams.set(number, { answer, asked: 0, endedAt: performance.now() })
    response.writeHead(200, events).end(`id: ${number}-0\nretry: ${retry}\ndata: \n\n`)
    return
  }
  const stream = streams.get(Number(last.split('-')[0]))
  if (stream === undefined) {
    response.writeHead(405).end()
    return
  }
  gets.push({ last, session, waited: performance.now() - stream.endedAt })
  if (refusal !== 200) {
    response.writeHead(refusal, json).end('{}')
    return
  }
  stream.asked++
  stream.endedAt = performance.now()
  response.writeHead(200, events)
  const number = last.split('-')[0]
  if (stream.asked <= polls || !hasAnswer)
    response.end(hasEvents ? `id: ${number}-${stream.asked + 1}\ndata: \n\n` : undefined)
  else response.end(`id: ${number}-end\ndata: ${stream.answer}\n\n`)
}

const server = useListening(
  createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const session = request.headers['mcp-session-id'] as string | undefined
    if (request.method === 'GET') {
      serveGet(String(request.headers['last-event-id']), session, response)
      return
    }
    const message = JSON.parse(body || '{}') as Message
    const { id, method = '' } = message
    received.push(request.method === 'DELETE' ? `DELETE ${session}` : method)
    if (id === undefined || method === '') {
      if (method === '' && request.method === 'POST') hasAnswer = true
      response.writeHead(202).end()
      return
    }
    if (method === 'server/discover') {
      response.writeHead(404).end()
      return
    }
    if (method === 'initialize') response.setHeader('mcp-session-id', `session-${++sessions}`)
    const answer = JSON.stringify({ jsonrpc: '2.0', id, result: resultOf(message) })
    if (polled.has(method)) {
      response.writeHead(200, events)
      hasAnswer = question === undefined
      poll(response, answer, question)
    } else response.writeHead(200, json).end(answer)
  }),
)

/** A server of the official SDK with a tool that closes its stream before it answers. */
const official = useMcpServer({
  eventStore: () => new OrderedEventStore(),
  retryInterval: 100,
  offer: (one) => {
    one.registerTool('wait', {}, async ({ closeSSEStream }) => {
      closeSSEStream?.()
      await new Promise((resolve) => setTimeout(resolve, 500))
      const text = closeSSEStream === undefined ? 'not polled' : 'polled'
      return { content: [{ type: 'text', text }] }
    })
  },
})
const port = await freePort()
const target = (name: string, more: object = {}) => ({
  name,
  static: { host: '127.0.0.1', port: server.port, ...more },
})
useGateway(() => ({
  manifests: {
    'all.yaml': mcpManifests(port, {
      single: { targets: [target('one')] },
      stateless: { targets: [target('one')], sessionRouting: 'Stateless' },
      several: { targets: [target('one'), target('two')] },
      limited: {
        targets: [target('one', { policies: { http: { requestTimeout: '1s' } } })],
        sessionRouting: 'Stateless',
      },
      sse: { targets: [target('one'), target('two')] },
      official: { targets: [target('one', { port: official.port })] },
      'official-stateless': {
        targets: [target('one', { port: official.port })],
        sessionRouting: 'Stateless',
      },
    }),
  },
}))

const call = (name = 'wait', id = 7) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: {} },
})
const url = (path: string) => `http://127.0.0.1:${port}${path}`
const done = { content: [{ type: 'text', text: 'wait is done' }] }

describe('a server of the official SDK that closes the stream of a call', () => {
  const polledText = { content: [{ type: 'text', text: 'polled' }] }

  it.each(['/official', '/official-stateless'])('answers a legacy client: %s', async (path) => {
    const client = await connectClient(port, path)
    expect(await client.callTool({ name: 'wait' })).toEqual(polledText)
    await client.close()
  })

  it('answers a modern client', async () => {
    const { message } = await sendModern(
      url('/official-stateless'),
      modernRequest('tools/call', { name: 'wait', arguments: {} }),
    )
    expect(message).toMatchObject({ result: polledText })
  })
})

describe('a stream of a request that the server closes for polling', () => {
  it('is resumed for a legacy client of a stateless backend', async () => {
    polls = 2
    const session = await rawSession(port, '/stateless')
    const { message } = await session.send(port, call())
    expect(message).toEqual({ jsonrpc: '2.0', id: 7, result: done })
    expect(gets.map(({ last }) => last.split('-')[1])).toEqual(['0', '2', '3'])
    for (const { waited, session: id } of gets) {
      expect(waited).toBeGreaterThanOrEqual(retry - 5)
      expect(id).toBe(`session-${sessions}`)
    }
    expect(received.filter((method) => method === 'tools/call')).toHaveLength(1)
  })

  it('is resumed after the same event if a resumed stream gives none', async () => {
    polls = 2
    hasEvents = false
    const session = await rawSession(port, '/stateless')
    const { message } = await session.send(port, call())
    expect(message).toEqual({ jsonrpc: '2.0', id: 7, result: done })
    expect(gets.map(({ last }) => last.split('-')[1])).toEqual(['0', '0', '0'])
  })

  it('is resumed for a modern client', async () => {
    const { message } = await sendModern(
      url('/stateless'),
      modernRequest('tools/call', { name: 'wait', arguments: {} }),
    )
    expect(message).toMatchObject({ id: 1, result: { ...done, resultType: 'complete' } })
    // The session ends only after the call.
    expect(gets.length).toBe(2)
    await expect.poll(() => received).toContain(`DELETE ${gets[1]?.session}`)
  })

  it('is resumed while a modern client is asked for input', async () => {
    question = { method: 'elicitation/create', params: { message: 'Go on?', requestedSchema: {} } }
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }
    const params = { name: 'wait', arguments: {} }
    const first = await sendModern(url('/stateless'), modernRequest('tools/call', params, { meta }))
    const { inputRequests = {}, requestState } = (first.message?.result ?? {}) as {
      inputRequests?: object
      requestState?: string
    }
    const [key = ''] = Object.keys(inputRequests)
    const inputResponses = { [key]: { action: 'accept', content: {} } }
    const more = modernRequest('tools/call', { ...params, requestState, inputResponses }, { meta })
    const second = await sendModern(url('/stateless'), more)
    expect(second.message).toMatchObject({ result: done })
  })

  it('is resumed for joined lists', async () => {
    polled = new Set(['tools/list'])
    const session = await rawSession(port, '/several')
    const { message } = await session.send(port, { jsonrpc: '2.0', id: 3, method: 'tools/list' })
    expect(message).toMatchObject({
      id: 3,
      result: { tools: [{ name: 'one_wait' }, { name: 'two_wait' }] },
    })
    expect(JSON.stringify(message)).not.toContain('unavailable')
  })

  it('is resumed for initialize, with the session that the server has named', async () => {
    polled = new Set(['initialize'])
    const session = await rawSession(port, '/single')
    const own = `session-${sessions}`
    expect(gets).toMatchObject([{ session: own }, { session: own }])
    expect((await session.send(port, { jsonrpc: '2.0', id: 3, method: 'ping' })).status).toBe(200)
  })

  it('is resumed for each request of a batch', async () => {
    const version = '2025-03-26'
    const session = await rawSession(port, '/single', version)
    const batch = JSON.stringify([call('wait', 1), call('wait', 2)])
    const headers = { 'mcp-protocol-version': version }
    const { messages } = await session.send(port, batch, headers)
    expect(messages).toHaveLength(2)
    expect(messages).toContainEqual({ jsonrpc: '2.0', id: 1, result: done })
    expect(messages).toContainEqual({ jsonrpc: '2.0', id: 2, result: done })
  })

  it('is resumed for a client of the older transport', async () => {
    const client = new Client({ name: 'old', version: '1' })
    const transport = new SSEClientTransport(new URL(url('/sse')))
    await client.connect(transport as Parameters<Client['connect']>[0])
    expect(await client.callTool({ name: 'one_wait' })).toEqual(done)
    await client.close()
  })

  it('is left to a legacy client that can resume it', async () => {
    const session = await rawSession(port, '/single')
    const { messages } = await session.send(port, call())
    expect(messages).toEqual([])
    expect(gets).toEqual([])
  })

  it.each([404, 405, 400])(
    'fails the call, which is not repeated, if the server refuses to resume with %i',
    async (status) => {
      refusal = status
      const session = await rawSession(port, '/stateless')
      const { message } = await session.send(port, call())
      expect(message).toMatchObject({ id: 7, error: { code: -32603 } })
      expect(gets).toHaveLength(1)
      expect(received.filter((method) => method === 'tools/call')).toHaveLength(1)
    },
  )

  it('is given up after some failures', async () => {
    refusal = 503
    const session = await rawSession(port, '/stateless')
    const { message } = await session.send(port, call())
    expect(message).toMatchObject({ id: 7, error: { code: -32603 } })
    expect(gets.length).toBeGreaterThan(1)
    expect(gets.length).toBeLessThan(10)
  })

  it('ends with the timeout of the target', async () => {
    polls = 1_000
    const session = await rawSession(port, '/limited')
    const begun = performance.now()
    const { message } = await session.send(port, call())
    expect(message).toMatchObject({ id: 7, error: { message: 'upstream call timeout' } })
    expect(performance.now() - begun).toBeGreaterThan(900)
    expect(gets.length).toBeGreaterThan(1)
  })

  it('is not resumed any more when the client has gone', async () => {
    polls = 1_000
    const controller = new AbortController()
    const request = modernRequest('tools/call', { name: 'wait', arguments: {} })
    const answering = fetch(url('/stateless'), {
      method: 'POST',
      headers: modernHeaders(request),
      body: JSON.stringify(request),
      signal: controller.signal,
    }).then((response) => response.text())
    await expect.poll(() => gets.length).toBeGreaterThan(1)
    controller.abort()
    await expect(answering).rejects.toThrow()
    // The server learns that the call is cancelled, and then that the session has ended.
    await expect.poll(() => received).toContain(`DELETE ${gets[0]?.session}`)
    expect(received).toContain('notifications/cancelled')
    const after = gets.length
    polls = 1
    const session = await rawSession(port, '/stateless')
    await session.send(port, call())
    expect(gets.slice(after).every(({ last }) => last !== gets[after - 1]?.last)).toBe(true)
  })
})

describe('a stream for server messages that the server closes for polling', () => {
  beforeEach(() => {
    hasOwnStream = true
  })

  /** The server has stated the time, which is shorter than that of the gateway. */
  const expectPolls = async () => {
    const own = () => gets.filter(({ last }) => last.startsWith(`${streams.size}-`))
    await expect.poll(() => own().length).toBeGreaterThan(1)
    expect(own()[0]?.last).toMatch(/-0$/)
    for (const { waited } of own()) {
      expect(waited).toBeGreaterThanOrEqual(retry - 5)
      expect(waited).toBeLessThan(900)
    }
  }

  it('is resumed for the stream of a legacy client', async () => {
    const session = await rawSession(port, '/several')
    const controller = new AbortController()
    const response = await fetch(url('/several'), {
      headers: { accept: 'text/event-stream', 'mcp-session-id': session.id },
      signal: controller.signal,
    })
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('tools/list_changed')) text += (await reader?.read())?.value ?? ''
    await expectPolls()
    controller.abort()
  })

  it('is resumed for the subscription of a modern client', async () => {
    const params = { notifications: { toolsListChanged: true } }
    const request = modernRequest('subscriptions/listen', params)
    const stream = await openModern(url('/stateless'), request)
    await expect.poll(() => stream.messages.length).toBeGreaterThan(2)
    expect(stream.messages[2]).toMatchObject({ method: 'notifications/tools/list_changed' })
    await expectPolls()
    stream.close()
  })
})
