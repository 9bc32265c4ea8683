/** What the stream of a client reports when a session at a server, or a server itself, has changed. */
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { type McpSession, mcpManifests, rawSession } from '../support/mcp-client.ts'
import { startOlderServer } from '../support/mcp-older-server.ts'
import { RefusingServer, type Reply, send } from '../support/mcp-refusing-server.ts'

const one = new RefusingServer()
const two = new RefusingServer()
const ports = { one: useListening(one.http), two: useListening(two.http) }
const older = useFixture(startOlderServer)
const port = await freePort()
useGateway(() => {
  const target = (name: 'one' | 'two') => ({
    name,
    static: { host: '127.0.0.1', port: ports[name].port },
  })
  const sse = { host: '127.0.0.1', port: older.port, protocol: 'SSE' }
  return {
    manifests: {
      'all.yaml': mcpManifests(port, {
        pair: { targets: [target('one'), target('two')] },
        older: { targets: [{ name: 'older', static: sse }] },
      }),
    },
    args: ['--workers', '2'],
  }
})

/** A stream that stays open and says nothing. */
const silentStream: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
}
beforeEach(() => {
  for (const server of [one, two]) {
    server.reset()
    server.replies.set('GET', silentStream)
  }
})

/** Opens the stream of a session. Returns what has been received so far. */
async function listen({ id }: McpSession, path: string): Promise<() => string> {
  const controller = new AbortController()
  onTestFinished(() => controller.abort())
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { accept: 'text/event-stream', 'mcp-session-id': id },
    signal: controller.signal,
  })
  let text = ''
  const read = async () => {
    const pieces = response.body?.pipeThrough(new TextDecoderStream()) ?? []
    for await (const piece of pieces) text += piece
  }
  read().catch(() => {})
  return () => text
}

/** Sends a request over a connection of its own, which may reach any worker. */
const ask = async (session: McpSession, method: string, params: object = {}) => {
  const message = { jsonrpc: '2.0', id: 1, method, params }
  return (await session.send(port, message, { connection: 'close' })).message
}
const kinds = ['tools', 'prompts', 'resources']
const changes = (text: string) => kinds.filter((kind) => text.includes(`${kind}/list_changed`))
const patient = { timeout: 10_000 }

describe('a session at a server that is begun again', () => {
  it('is reported as new lists, and as updates of the subscribed resources', async () => {
    const session = await rawSession(port, '/pair')
    await ask(session, 'resources/subscribe', { uri: 'one+test://x' })
    await ask(session, 'resources/subscribe', { uri: 'two+test://y' })
    const text = await listen(session, '/pair')
    one.lost.add(one.seen.at(-1)?.session ?? '')
    await ask(session, 'tools/call', { name: 'one_who', arguments: {} })
    await expect.poll(() => changes(text()), patient).toEqual(kinds)
    await expect.poll(() => text(), patient).toContain('{"uri":"one+test://x"}')
    expect(text()).not.toContain('test://y')
  })

  it('is reported if the server was not there when the client began', async () => {
    two.replies.set('initialize', (response) => send(response, 503))
    const session = await rawSession(port, '/pair')
    const text = await listen(session, '/pair')
    expect(changes(text())).toEqual([])
    two.replies.delete('initialize')
    await expect.poll(() => changes(text()), patient).toEqual(kinds)
    expect(await ask(session, 'tools/list')).toMatchObject({
      result: { tools: [{ name: 'one_who' }, { name: 'two_who' }] },
    })
  })

  it('is reported although no server has a stream', async () => {
    for (const { replies } of [one, two]) replies.set('GET', (response) => send(response, 405))
    two.replies.set('initialize', (response) => send(response, 503))
    const session = await rawSession(port, '/pair')
    two.replies.delete('initialize')
    const text = await listen(session, '/pair')
    await expect.poll(() => changes(text()), patient).toEqual(kinds)
    await session.end(port)
  })

  it('is reported for a server of the older transport', async () => {
    const session = await rawSession(port, '/older')
    await ask(session, 'resources/subscribe', { uri: 'test://x' })
    older.drop()
    // The stream of the client ended with that of the server.
    await expect.poll(() => older.open).toBe(0)
    const text = await listen(session, '/older')
    await expect.poll(() => changes(text()), patient).toEqual(kinds)
    await expect.poll(() => text(), patient).toContain('{"uri":"test://x"}')
    const subscribed = older.received.filter(
      ({ message: { method } }) => method === 'resources/subscribe',
    )
    expect(new Set(subscribed.map(({ session: at }) => at)).size).toBe(2)
  })
})

describe('a server that is missing in a list', () => {
  it.each([
    ['has a stream', silentStream],
    ['has no stream', ((response) => send(response, 405)) as Reply],
  ])('is reported when it answers again: a server that %s', async (_, stream) => {
    two.replies.set('GET', stream)
    const session = await rawSession(port, '/pair')
    const text = await listen(session, '/pair')
    two.replies.set('tools/list', (response) => send(response, 503))
    expect(await ask(session, 'tools/list')).toMatchObject({
      result: { _meta: { 'sluice.dev/unavailable': ['two'] } },
    })
    await expect.poll(() => two.count('tools/list'), patient).toBeGreaterThan(1)
    expect(changes(text())).toEqual([])
    two.replies.delete('tools/list')
    await expect.poll(() => changes(text()), patient).toEqual(['tools'])
  })

  it('is reported on a stream that the client opens after the list', async () => {
    const session = await rawSession(port, '/pair')
    two.replies.set('tools/list', (response) => send(response, 503))
    await ask(session, 'tools/list')
    two.replies.delete('tools/list')
    const text = await listen(session, '/pair')
    await expect.poll(() => changes(text()), patient).toEqual(['tools'])
  })
})
