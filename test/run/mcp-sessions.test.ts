/** MCP sessions on real traffic: over several processes, restarts, and servers that forget them. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { useFixture, useFolder, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { connectClient, type McpSession, mcpManifests, rawSession } from '../support/mcp-client.ts'
import { TestSseServer, useMcpServer } from '../support/mcp-server.ts'
import { waitFor } from '../support/wait-for.ts'

const one = useMcpServer({ offer: offer('one') })
const two = useMcpServer({ offer: offer('two'), json: true })
const plain = useMcpServer({ offer: offer('plain'), isStateless: true })
const older = useFixture(
  () => new TestSseServer(offer('old')).start(),
  (server) => server.kill(),
)
const ports = [await freePort(), await freePort()] as const
const freshPort = await freePort()

function offer(name: string): (server: McpServer) => void {
  return (server) => {
    server.registerTool('who', { inputSchema: { text: z.string() } }, ({ text }) => ({
      content: [{ type: 'text', text: `${name}: ${text}` }],
    }))
    server.registerTool('steps', {}, async (extra) => {
      const token = extra._meta?.progressToken
      for (let progress = 1; token !== undefined && progress <= 2; progress++) {
        await extra.sendNotification({
          method: 'notifications/progress',
          params: { progressToken: token, progress },
        })
      }
      return { content: [] }
    })
  }
}

const target = (name: string, port: number, more: object = {}) => ({
  name,
  static: { host: '127.0.0.1', port, ...more },
})

const manifests = (port: number) =>
  mcpManifests(port, {
    single: { targets: [target('one', one.port)] },
    pair: { targets: [target('one', one.port), target('two', two.port)] },
    stateless: {
      targets: [target('one', one.port), target('plain', plain.port)],
      sessionRouting: 'Stateless',
    },
    older: { targets: [target('old', older.port, { protocol: 'SSE' })] },
    mixed: {
      targets: [target('new', two.port), target('old', older.port, { protocol: 'SSE' })],
    },
    sse: { targets: [target('one', one.port), target('two', two.port)] },
  })

const key = join(useFolder('sluice-mcp-'), 'session.key')
writeFileSync(key, 'a secret that both processes share')
const useReplica = (port: number, ...args: string[]) =>
  useGateway(() => ({
    manifests: { 'all.yaml': manifests(port) },
    args: ['--session-key-file', key, ...args],
  }))
useReplica(ports[0], '--workers', '2')
useReplica(ports[1])
useReplica(freshPort, '--workers', '2')

const say = (session: McpSession, port: number, name = 'who', id = 7) =>
  session.send(port, {
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: { text: 'hi' } },
  })

describe('MCP session routing Stateful', () => {
  it('[SessionRouting=Stateful] continues a session in another process, at the same server', async () => {
    const session = await rawSession(ports[0], '/single')
    const before = one.sessionIds.length
    for (const port of [ports[1], ports[0], ports[1]]) {
      const { status, message } = await say(session, port)
      expect(status).toBe(200)
      expect(message).toMatchObject({ id: 7, result: { content: [{ text: 'one: hi' }] } })
    }
    expect(one.sessionIds).toHaveLength(before)
    await session.end(ports[1])
    expect(one.sessionIds).toHaveLength(before - 1)
    expect((await say(session, ports[1])).status).toBe(404)
    expect((await say(session, ports[0])).status).toBe(404)
  })

  it('refuses session ids that it has not sealed itself for this backend', async () => {
    const session = await rawSession(ports[0], '/single')
    const bent = (id: string) => `${id.slice(0, 20)}${id[20] === 'A' ? 'B' : 'A'}${id.slice(21)}`
    for (const id of ['1234', '', 'x'.repeat(5_000), bent(session.id), `${session.id}=`]) {
      const answer = await say({ ...session, id, send: session.as(id).send }, ports[0])
      expect([400, 404]).toContain(answer.status)
    }
    const other = session.at('/pair')
    expect((await say(other, ports[0], 'one_who')).status).toBe(404)
    const without = await session
      .as(undefined)
      .send(ports[0], { jsonrpc: '2.0', id: 1, method: 'ping' })
    expect(without.status).toBe(400)
    await session.end(ports[0])
  })

  it('answers 404 when the only server has forgotten the session', async () => {
    const session = await rawSession(ports[0], '/single')
    await one.kill()
    const gone = await say(session, ports[0])
    expect(gone.status).toBe(503)
    expect(gone.message).toMatchObject({ id: 7, error: { code: -32603 } })
    await one.start()
    expect((await say(session, ports[0])).status).toBe(404)
    const again = await rawSession(ports[0], '/single')
    expect((await say(again, ports[0])).status).toBe(200)
  })

  it('renews the session of a restarted server while another server keeps its own', async () => {
    const client = await connectClient(ports[0], '/pair')
    await one.kill()
    const answer = await client.listTools()
    expect(answer._meta).toEqual({ 'sluice.dev/unavailable': ['one'] })
    await one.start()
    const result = await client.callTool({ name: 'one_who', arguments: { text: 'back' } })
    expect(result.content).toEqual([{ type: 'text', text: 'one: back' }])
    expect((await client.listTools()).tools).toHaveLength(4)
    await client.close()
  })

  it('ends with 404 when all servers have forgotten the session', async () => {
    const session = await rawSession(ports[0], '/pair')
    for (const server of [one, two]) {
      await server.kill()
      await server.start()
    }
    expect((await say(session, ports[0], 'one_who')).status).toBe(404)
    const list = await session.send(ports[0], { jsonrpc: '2.0', id: 3, method: 'tools/list' })
    expect(list.status).toBe(404)
  })
})

describe('MCP session routing Stateless', () => {
  it('[SessionRouting=Stateless] needs no session, and leaves none behind', async () => {
    const client = await connectClient(ports[0], '/stateless')
    const before = one.sessionIds.length
    const { tools } = await client.listTools()
    expect(tools).toHaveLength(4)
    for (const name of ['one', 'plain']) {
      const result = await client.callTool({ name: `${name}_who`, arguments: { text: 'x' } })
      expect(result.content).toEqual([{ type: 'text', text: `${name}: x` }])
    }
    await waitFor('the sessions to end', () => one.sessionIds.length <= before)
    const url = `http://127.0.0.1:${ports[0]}/stateless`
    for (const method of ['GET', 'DELETE']) {
      const headers = { accept: 'text/event-stream' }
      expect((await fetch(url, { method, headers })).status).toBe(405)
    }
    await client.close()
  })
})

describe('the older MCP transport', () => {
  it('[MCPProtocol=SSE] [McpTarget.protocol] is supported towards servers', async () => {
    const client = await connectClient(ports[0], '/older')
    const seen: number[] = []
    expect((await client.listTools()).tools).toHaveLength(2)
    const result = await client.callTool({ name: 'who', arguments: { text: 'x' } })
    expect(result.content).toEqual([{ type: 'text', text: 'old: x' }])
    await client.callTool({ name: 'steps' }, undefined, {
      onprogress: ({ progress }) => seen.push(progress),
    })
    expect(seen).toEqual([1, 2])
    await client.close()
  })

  it('can be combined with the newer one', async () => {
    const client = await connectClient(ports[1], '/mixed')
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['new_who', 'new_steps', 'old_who', 'old_steps'])
    const result = await client.callTool({ name: 'old_who', arguments: { text: 'x' } })
    expect(result.content).toEqual([{ type: 'text', text: 'old: x' }])
    await client.close()
  })

  it('begins a session again when a server was restarted', async () => {
    const client = await connectClient(ports[1], '/older')
    await older.kill()
    await older.start()
    const call = () => client.callTool({ name: 'who', arguments: { text: 'x' } })
    const result = await waitFor('the server', () => call().catch(() => undefined))
    expect(result.content).toEqual([{ type: 'text', text: 'old: x' }])
    await client.close()
  })

  it.each([
    ['served sessions before', ports[0], 4],
    ['served nothing before', freshPort, 12],
  ])(
    'is supported towards clients, whichever worker receives their messages, by a gateway that %s',
    async (_, port, length) => {
      const clients = await Promise.all(
        Array.from({ length }, async () => {
          const client = new Client({ name: 'old', version: '1' })
          const url = new URL(`http://127.0.0.1:${port}/sse`)
          await client.connect(new SSEClientTransport(url) as Parameters<Client['connect']>[0])
          return client
        }),
      )
      for (const client of clients) {
        expect((await client.listTools()).tools).toHaveLength(4)
        const result = await client.callTool({ name: 'two_who', arguments: { text: 'x' } })
        expect(result.content).toEqual([{ type: 'text', text: 'two: x' }])
      }
      await Promise.all(clients.map((client) => client.close()))
      await waitFor('the sessions to end', () => one.sessionIds.length <= 20)
    },
  )
})

const port = await freePort()

describe('MCP servers that misbehave', () => {
  let script: (id: string, write: (text: string) => void, end: () => void) => void
  const bad = useListening(
    createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      const message = body === '' ? {} : (JSON.parse(body) as { id?: number; method?: string })
      if (message.method === 'initialize') {
        const result = {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'bad', version: '1' },
        }
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }))
        return
      }
      if (message.id === undefined) {
        response.writeHead(message.method === undefined ? 405 : 202).end()
        return
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      script(
        JSON.stringify(message.id),
        (text) => response.write(text),
        () => response.end(),
      )
    }),
  )
  useGateway(() => ({
    manifests: { 'all.yaml': mcpManifests(port, { bad: { targets: [target('bad', bad.port)] } }) },
  }))

  const ask = async (act: typeof script) => {
    script = act
    const session = await rawSession(port, '/bad')
    return session.send(port, { jsonrpc: '2.0', id: 9, method: 'tools/list' })
  }

  it('send malformed messages: the client gets an error', async () => {
    for (const text of [
      '{"jsonrpc":',
      '[]',
      '{"a":1}',
      '{"jsonrpc":"2.0","id":9,"id":9,"result":{}}',
    ]) {
      const { message } = await ask((_id, write) => write(`data: ${text}\n\n`))
      expect(message).toMatchObject({ id: 9, error: { code: -32603 } })
    }
  })

  it('answer unknown requests: the answers are dropped', async () => {
    const { message } = await ask((id, write, end) => {
      write('data: {"jsonrpc":"2.0","id":77,"result":{"tools":[{"name":"forged"}]}}\n\n')
      write(`data: {"jsonrpc":"2.0","id":"78","result":{"tools":[{"name":"forged"}]}}\n\n`)
      write(`data: {"jsonrpc":"2.0","id":${id},"result":{"tools":[]}}\n\n`)
      end()
    })
    expect(message).toEqual({ jsonrpc: '2.0', id: 9, result: { tools: [] } })
  })

  it('close without an answer: the client gets an error', async () => {
    const { message } = await ask((_id, _write, end) => end())
    expect(message).toMatchObject({ id: 9, error: { code: -32603 } })
  })

  it('flood with notifications: they are read no faster than the client reads', async () => {
    let sent = 0
    let isBlocked = false
    const { message } = await ask((id, write, end) => {
      const text = `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${'x'.repeat(1_000)}"}}\n\n`
      for (; sent < 3_000; sent++) write(text)
      isBlocked = true
      write(`data: {"jsonrpc":"2.0","id":${id},"result":{"tools":[]}}\n\n`)
      end()
    })
    expect(isBlocked).toBe(true)
    expect(message).toMatchObject({ id: 9, result: { tools: [] } })
  })
})
