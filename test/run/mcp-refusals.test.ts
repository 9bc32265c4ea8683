/** Servers that refuse messages without losing the session, and servers that say nothing. */
import { beforeEach, describe, expect, it } from 'vitest'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { connectClient, mcpManifests, rawSession } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { error, RefusingServer, type Reply, send } from '../support/mcp-refusing-server.ts'
import { waitFor } from '../support/wait-for.ts'

const one = new RefusingServer()
const two = new RefusingServer()
const ports = { one: useListening(one.http), two: useListening(two.http) }
const port = await freePort()
useGateway(() => {
  const target = (name: 'one' | 'two') => ({
    name,
    static: { host: '127.0.0.1', port: ports[name].port },
  })
  return {
    manifests: {
      'all.yaml': mcpManifests(port, {
        single: { targets: [target('one')] },
        pair: { targets: [target('one'), target('two')] },
        each: { targets: [target('one')], sessionRouting: 'Stateless' },
        // No thread has seen a session of this target.
        quiet: { targets: [target('one')] },
      }),
    },
    args: ['--workers', '2'],
  }
})
beforeEach(() => {
  one.reset()
  two.reset()
})

const call = (name: string, id = 11) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: {} },
})
const url = (path: string) => `http://127.0.0.1:${port}${path}`
const listen = (path: string, id: string) =>
  fetch(url(path), { headers: { accept: 'text/event-stream', 'mcp-session-id': id } })

describe.each(['/single', '/pair'])('a session behind %s', (path) => {
  const name = path === '/single' ? 'who' : 'one_who'

  it('gets the error of a call that is refused with 400, and goes on', async () => {
    one.replies.set('tools/call', (response, { id }) =>
      send(response, 400, error(-32602, 'session_length must be positive', id)),
    )
    const session = await rawSession(port, path)
    const { message } = await session.send(port, call(name))
    const own = { code: -32602, message: 'session_length must be positive' }
    expect(message).toMatchObject({ id: 11, error: own })
    expect(one.count('tools/call')).toBe(1)
    one.replies.clear()
    const next = await session.send(port, call(name, 12))
    expect(next.message).toMatchObject({ id: 12, result: { content: [{ text: /^s-\d+$/ }] } })
    expect(one.count('initialize')).toBe(1)
  })

  it.each([
    [400, 'The user session_id is too long'],
    [400, error(-32000, 'Session registration failed: session already exists')],
    [404, 'no such page'],
    [404, error(-32601, 'Method not found', 11)],
    [410, 'gone'],
  ])('survives a call that is refused with %i %s', async (status, body) => {
    one.replies.set('tools/call', (response) => send(response, status, body))
    const session = await rawSession(port, path)
    const refused = await session.send(port, call(name))
    expect(refused.status).not.toBe(404)
    // A refusal that is no message passes with its status.
    if (refused.status === 200) expect(refused.message).toHaveProperty('error')
    else expect(refused.status).toBeGreaterThanOrEqual(400)
    expect(one.count('tools/call')).toBe(1)
    one.replies.clear()
    expect((await session.send(port, call(name))).message).toHaveProperty('result')
    expect(one.count('initialize')).toBe(1)
  })

  it.each([400, 404, 405])('survives a GET that is refused with %i', async (status) => {
    const text = error(-32000, 'Session registration failed: session already exists')
    for (const server of [one, two]) {
      server.replies.set('GET', (response) => send(response, status, text))
    }
    const session = await rawSession(port, path)
    const answer = await listen(path, session.id)
    expect(answer.status).not.toBe(404)
    await answer.body?.cancel()
    expect((await session.send(port, call(name))).message).toHaveProperty('result')
    expect(one.count('initialize')).toBe(1)
  })

  it('survives a notification that the server does not know', async () => {
    one.replies.set('notifications/initialized', (response) => send(response, 404))
    const session = await rawSession(port, path)
    expect((await session.send(port, call(name))).message).toHaveProperty('result')
    expect(one.count('initialize')).toBe(1)
  })

  it.each([
    ['application/json', 'null'],
    ['application/json', '{}'],
    ['application/json', '{"jsonrpc":"2.0","result":{}}'],
    ['application/json', ''],
    ['text/plain', 'ok'],
    ['text/html', '<p>thanks</p>'],
    ['text/event-stream', 'data: nonsense\n\n'],
  ])('takes any body of a 200 for a notification: %s %s', async (type, body) => {
    for (const server of [one, two]) {
      server.replies.set('notifications/initialized', (response) => {
        response.writeHead(200, { 'content-type': type }).end(body)
      })
    }
    const client = await connectClient(port, path)
    expect((await client.callTool({ name })).content).toHaveLength(1)
    await client.close()
  })
})

describe('a session that a server has lost', () => {
  it('is begun again once, and the call is repeated after a 404', async () => {
    const session = await rawSession(port, '/pair')
    const before = one.seen.findLast(({ method }) => method === 'notifications/initialized')
    one.lost.add(before?.session ?? '')
    const { message } = await session.send(port, call('one_who'))
    expect(message).toHaveProperty('result')
    expect(one.count('initialize')).toBe(2)
  })

  it('is begun again after a 400 that names it, but a call is not repeated', async () => {
    const session = await rawSession(port, '/pair')
    const text = error(-32000, 'Bad Request: No valid session ID provided')
    const refuse: Reply = (response) => send(response, 400, text)
    one.replies.set('ping', refuse).set('tools/call', refuse).set('tools/list', refuse)
    const { message } = await session.send(port, call('one_who'))
    expect(message).toMatchObject({
      error: { message: expect.stringContaining('lost its session') },
    })
    expect(one.count('tools/call')).toBe(1)
    expect(one.count('initialize')).toBe(2)
    one.replies.clear()
    expect((await session.send(port, call('one_who'))).message).toHaveProperty('result')
  })

  describe('with the stream of a request', () => {
    const events = { 'content-type': 'text/event-stream' }
    /** Resumes the stream of the call, which `one` has closed to be polled. */
    const resume = async (lose: (at: string) => void) => {
      one.replies.set('tools/call', (response) => {
        response.writeHead(200, events).end('id: 7\nretry: 50\ndata: \n\n')
      })
      const session = await rawSession(port, '/pair')
      const begun = await session.stream(port, { post: call('one_who') })
      const last = /^id: (.+)$/m.exec(begun.text)?.[1] ?? ''
      lose(one.seen.find(({ method }) => method === 'tools/call')?.session ?? '')
      return { session, answer: await session.stream(port, { from: last }) }
    }
    const lost = /^event: message\ndata: (\{.*\})\n\n$/

    it('gives the client an error with the id of the request', async () => {
      const { session, answer } = await resume((at) => one.lost.add(at))
      expect(JSON.parse(lost.exec(answer.text)?.[1] ?? '{}')).toMatchObject({
        id: 11,
        error: {
          code: -32603,
          message: expect.stringContaining('one: the stream cannot be resumed'),
        },
      })
      one.replies.clear()
      expect((await session.send(port, call('one_who', 12))).message).toHaveProperty('result')
    })

    it('does so as well if the server has only lost the events', async () => {
      const { answer } = await resume(() => {
        one.replies.set('GET', (response) => send(response, 400, error(-32000, 'Invalid event ID')))
      })
      expect(answer.text).toMatch(lost)
      expect(one.count('initialize')).toBe(1)
    })
  })

  it('drops the position that its server refuses, and tells the client to list again', async () => {
    const session = await rawSession(port, '/pair')
    const froms: unknown[] = []
    one.replies.set('GET', (response, { from }) => {
      froms.push(from)
      if (from !== undefined) send(response, 400, error(-32000, 'Invalid event ID'))
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    })
    const from = Buffer.from('[["",""],["one","7"]]').toString('base64url')
    const { text } = await session.stream(port, { from, until: () => froms.length > 1 })
    expect(froms).toEqual(['7', undefined])
    expect(text).toContain('notifications/tools/list_changed')
  })

  it('ends with 404 at a single server', async () => {
    const session = await rawSession(port, '/single')
    const text = error(-32000, 'Bad Request: No valid session ID provided')
    one.replies.set('ping', (response) => send(response, 400, text))
    one.replies.set('tools/call', (response) => send(response, 400, text))
    expect((await session.send(port, call('who'))).status).toBe(404)
  })
})

describe('a session that is begun after that of the client', () => {
  const text = (message: unknown) =>
    (message as { result?: { content: [{ text: string }] } }).result?.content[0].text

  it('is one session, whichever thread needs it', async () => {
    two.replies.set('initialize', (response) => send(response, 503))
    const session = await rawSession(port, '/pair')
    two.replies.clear()
    const close = { connection: 'close' }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, id) => session.send(port, call('two_who', id), close)),
    )
    expect(new Set(answers.map(({ message }) => text(message))).size).toBe(1)
    expect(two.count('initialize')).toBe(2)
  })

  it('has the subscriptions and the log level of the client', async () => {
    const session = await rawSession(port, '/pair')
    const uri = 'one+test://x'
    for (const [method, params] of [
      ['resources/subscribe', { uri }],
      ['logging/setLevel', { level: 'debug' }],
    ] as const) {
      await session.send(port, { jsonrpc: '2.0', id: 1, method, params })
    }
    const before = one.seen.at(-1)?.session ?? ''
    one.lost.add(before)
    const after = text((await session.send(port, call('one_who'))).message)
    expect(after).not.toBe(before)
    const replayed = one.seen.filter((message) => message.session === after)
    expect(replayed.map(({ method }) => method)).toEqual(
      expect.arrayContaining(['resources/subscribe', 'logging/setLevel', 'tools/call']),
    )
  })
})

describe('a server that says nothing', () => {
  const silence: Reply = () => {}

  it('does not hold up notifications, lists, levels and DELETE of the others', async () => {
    const session = await rawSession(port, '/pair')
    const methods = ['notifications/roots/list_changed', 'tools/list', 'logging/setLevel', 'DELETE']
    for (const method of methods) two.replies.set(method, silence)
    const [noted, listed, level] = await Promise.all([
      session.send(port, { jsonrpc: '2.0', method: methods[0] }),
      session.send(port, { jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      session.send(port, {
        jsonrpc: '2.0',
        id: 2,
        method: 'logging/setLevel',
        params: { level: 'info' },
      }),
    ])
    expect(noted.status).toBe(202)
    const unavailable = { _meta: { 'sluice.dev/unavailable': ['two'] } }
    expect(listed.message).toMatchObject({
      result: { tools: [{ name: 'one_who' }], ...unavailable },
    })
    expect(level.message).toMatchObject({ id: 2, result: {} })
    expect(await session.end(port)).toBe(200)
  }, 20_000)

  it('does not hold up the beginning of a session, or its stream', async () => {
    two.replies.set('initialize', silence).set('GET', silence)
    one.replies.set('GET', (response) => {
      response.writeHead(405).end()
    })
    const session = await rawSession(port, '/pair')
    const stream = await listen('/pair', session.id)
    expect(stream.status).toBe(200)
    await stream.body?.cancel()
  }, 30_000)

  it('to server/discover is taken for a legacy one', async () => {
    one.isStateless = true
    one.replies.set('server/discover', silence)
    await rawSession(port, '/quiet')
    const { message } = await sendModern(url('/quiet'), modernRequest('server/discover'))
    expect(message).toHaveProperty('result')
  }, 20_000)
})

describe('a server that answers notifications with a body', () => {
  it('serves the requests of a backend without sessions', async () => {
    one.replies.set('notifications/initialized', (response) => send(response, 200, 'null'))
    const client = await connectClient(port, '/each')
    expect((await client.callTool({ name: 'who' })).content).toHaveLength(1)
    await waitFor('the end of the sessions', () => one.count('DELETE') > 0)
    await client.close()
  })
})

it('gives a client without a session the error of a refused call with its own id', async () => {
  one.replies.set('tools/call', (response, { id }) =>
    send(response, 400, error(-32602, 'session_length must be positive', id)),
  )
  const asked = modernRequest('tools/call', { name: 'who', arguments: {} }, { id: 11 })
  const { message } = await sendModern(url('/each'), asked)
  const own = { code: -32602, message: 'session_length must be positive' }
  expect(message).toMatchObject({ id: 11, error: own })
  expect(one.count('tools/call')).toBe(1)
})
