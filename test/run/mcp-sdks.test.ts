/** Both generations of the official SDKs, as clients and as servers, through the gateway. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { connectSdkClient, type SdkClient, startSdkServer } from '../support/mcp-sdks.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { describeWithParts } from '../support/parts.ts'

function offer(server: McpServer): void {
  const text = (value: unknown) => ({
    content: [{ type: 'text' as const, text: JSON.stringify(value) }],
  })
  server.registerTool('echo', { inputSchema: { text: z.string() } }, (args) => text(args.text))
  server.registerTool('steps', {}, async (extra) => {
    const progressToken = extra._meta?.progressToken ?? 0
    const params = { progressToken, progress: 1 }
    await extra.sendNotification({ method: 'notifications/progress', params })
    return text('done')
  })
  server.registerTool('ask', {}, async (extra) => {
    const requestedSchema = { type: 'object' as const, properties: {} }
    const params = { message: 'what?', requestedSchema }
    return text(await extra.sendRequest({ method: 'elicitation/create', params }, z.any()))
  })
  server.registerResource('r', 'test://r', {}, (uri) => ({
    contents: [{ uri: uri.href, text: 'r' }],
  }))
}

const port = await freePort()
const urlOf = (path: string) => `http://127.0.0.1:${port}${path}`

/** What the tests use of clients of both generations. */
interface AnyClient {
  tools(): Promise<string[]>
  call(name: string, args: object, onprogress?: () => void): Promise<unknown>
  read(uri: string): Promise<unknown>
  close(): Promise<void>
}

const ofFirst = (client: Client): AnyClient => ({
  tools: async () => (await client.listTools()).tools.map(({ name }) => name),
  call: (name, args, onprogress) =>
    client.callTool({ name, arguments: { ...args } }, undefined, onprogress && { onprogress }),
  read: (uri) => client.readResource({ uri }),
  close: () => client.close(),
})
const ofSecond = (client: SdkClient): AnyClient => ({
  tools: async () => (await client.listTools()).tools.map(({ name }) => name),
  call: (name, args, onprogress) =>
    client.callTool({ name, arguments: args }, onprogress && { onprogress }),
  read: (uri) => client.readResource({ uri }),
  close: () => client.close(),
})

const connectors: Readonly<Record<string, (path: string) => Promise<AnyClient>>> = {
  'generation 1': async (path) => {
    const client = await connectClient(port, path, { capabilities: { elicitation: {} } })
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { a: 'b' } }))
    return ofFirst(client)
  },
  // Such a client has no session, so that servers with sessions need one for each request.
  'generation 2, modern only': async (path) => {
    const isOfSessions = path === '/first' || path === '/mixed'
    const url = urlOf(isOfSessions ? `${path}-each` : path)
    return ofSecond(await connectSdkClient(url, { pin: '2026-07-28' }))
  },
  'generation 2, either era': async (path) => ofSecond(await connectSdkClient(urlOf(path), 'auto')),
  'generation 2, legacy': async (path) => ofSecond(await connectSdkClient(urlOf(path), 'legacy')),
}

describeWithParts(['mcp-sdks'], 'the official SDKs', () => {
  const first = useMcpServer({ offer })
  const dual = useFixture(() => startSdkServer({ isModernOnly: false }))
  const modern = useFixture(() => startSdkServer({ isModernOnly: true }))
  useGateway(() => {
    const target = (name: string, { port }: { readonly port: number }) => ({
      name,
      static: { host: '127.0.0.1', port },
    })
    const mixed = [target('a', first), target('b', modern)]
    return {
      manifests: {
        'all.yaml': mcpManifests(port, {
          first: { targets: [target('only', first)] },
          dual: { targets: [target('only', dual)] },
          modern: { targets: [target('only', modern)] },
          mixed: { targets: mixed },
          'first-each': { targets: [target('only', first)], sessionRouting: 'Stateless' },
          'mixed-each': { targets: mixed, sessionRouting: 'Stateless' },
          both: { targets: [target('a', dual), target('b', modern)] },
        }),
      },
    }
  })
  const servers = [
    ['a server of generation 1', '/first', '', ''],
    ['a server of both eras', '/dual', '', ''],
    ['a modern server', '/modern', '', ''],
    ['the legacy one of two servers', '/mixed', 'a_', 'a+'],
    ['the modern one of two servers', '/mixed', 'b_', 'b+'],
  ] as const

  describe.each(Object.keys(connectors))('a client of %s', (name) => {
    const connect = (path: string): Promise<AnyClient> => {
      const found = connectors[name]
      if (found === undefined) throw new Error(name)
      return found(path)
    }

    it.each(servers)('lists, calls, asks and reads at %s', async (_, path, prefix, uriPrefix) => {
      const client = await connect(path)
      expect(await client.tools()).toEqual(
        expect.arrayContaining(['echo', 'steps', 'ask'].map((tool) => `${prefix}${tool}`)),
      )
      const echo = await client.call(`${prefix}echo`, { text: 'hi' })
      expect(echo).toMatchObject({ content: [{ text: '"hi"' }] })
      let steps = 0
      await client.call(`${prefix}steps`, {}, () => {
        steps++
      })
      expect(steps).toBe(1)
      const asked = await client.call(`${prefix}ask`, {})
      expect(asked).toMatchObject({ content: [{ text: expect.stringContaining('"a":"b"') }] })
      const uri = `${uriPrefix}test://r`
      expect(await client.read(uri)).toMatchObject({ contents: [{ uri, text: 'r' }] })
      await client.close()
    })
  })

  it('subscribe to changes in the modern era', async () => {
    const client = await connectSdkClient(urlOf('/both'), 'auto')
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28')
    const subscription = await client.listen({ toolsListChanged: true })
    expect(subscription.honoredFilter).toEqual({ toolsListChanged: true })
    await subscription.close()
    await client.close()
  })

  it.each(['/first', '/mixed'])(
    'fall back to a session if a server keeps one: %s',
    async (path) => {
      const client = await connectSdkClient(urlOf(path), 'auto')
      expect(client.getNegotiatedProtocolVersion()).toBe('2025-11-25')
      await client.close()
    },
  )
})
