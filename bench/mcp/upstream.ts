/** MCP servers for benches, in this process: raw sockets and ready-made answers. */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { readHttp } from './read-http.ts'

export interface McpBenchUpstream {
  readonly port: number
  close(): void
}

export interface UpstreamShape {
  /** How many tools its list has. */
  readonly tools: number
  /** Milliseconds that it takes for a list. */
  readonly delayMs?: number
  /** Milliseconds for which modern clients may cache its list. */
  readonly ttlMs?: number
}

function answer(json: string, more = ''): Buffer {
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${more}`
  return Buffer.from(`${head}content-length: ${Buffer.byteLength(json)}\r\n\r\n${json}`)
}

const accepted = Buffer.from('HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n')
const noStream = Buffer.from('HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n')

/** What a tool of ordinary size looks like in a list. */
const toolOf = (n: number) => ({
  name: `tool-${n}`,
  description: `Looks something up in the part ${n} of the catalogue, and tells what it has found.`,
  inputSchema: {
    type: 'object',
    properties: {
      query: { type: 'string', description: 'what to look for' },
      limit: { type: 'integer', minimum: 1, maximum: 100 },
    },
    required: ['query'],
  },
})

/** The id of a request, as JSON. */
const idOf = (body: string): string => /"id":("[^"]*"|[^,}]+)/.exec(body)?.[1] ?? 'null'

export async function startMcpBenchUpstream({
  tools,
  delayMs = 0,
  ttlMs,
}: UpstreamShape): Promise<McpBenchUpstream> {
  const sockets = new Set<Socket>()
  const list = JSON.stringify({
    tools: Array.from({ length: tools }, (_, n) => toolOf(n)),
    ...(ttlMs !== undefined && { resultType: 'complete', ttlMs, cacheScope: 'public' }),
  })
  const info =
    '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}'
  const called = JSON.stringify({
    resultType: 'complete',
    content: [{ type: 'text', text: 'x'.repeat(200) }],
  })
  const discovered = '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}'
  let sessions = 0
  const resultOf = (body: string): Buffer => {
    const wrap = (result: string, more?: string) =>
      answer(`{"jsonrpc":"2.0","id":${idOf(body)},"result":${result}}`, more)
    if (body.includes('"tools/call"')) return wrap(called)
    if (body.includes('"tools/list"')) return wrap(list)
    if (body.includes('"server/discover"')) return wrap(discovered)
    if (body.includes('"initialize"')) return wrap(info, `mcp-session-id: s-${sessions++}\r\n`)
    return body.includes('"id"') ? wrap('{}') : accepted
  }
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    readHttp(socket, (head, bytes) => {
      const body = bytes.toString()
      const response = head.startsWith('POST') ? resultOf(body) : noStream
      if (delayMs === 0 || !body.includes('"tools/list"')) socket.write(response)
      else setTimeout(() => socket.write(response), delayMs)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return { port: (server.address() as AddressInfo).port, close }
}
