/** A server of the older MCP transport (HTTP with SSE) that answers as the test says. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly name?: string; readonly uri?: string }
  readonly result?: unknown
}

export interface OlderServer {
  readonly port: number
  /** Methods that get no answer. */
  readonly silent: Set<string>
  /** Messages in order, with the number of their session. */
  readonly received: readonly { readonly session: number; readonly message: Message }[]
  /** Number of streams that were opened. */
  readonly streams: number
  /** Number of open streams. */
  readonly open: number
  /** Ends all streams, as a restart does. */
  drop(): void
  close(): Promise<void>
}

const events = { 'content-type': 'text/event-stream' }
const capabilities = { tools: {}, resources: { subscribe: true }, logging: {} }

/**
 * Starts one on a free loopback port. Its tools are `who`, which returns the number of the session, `never`,
 * `steps`, which sends progress and no result, and `ask`, which returns what sampling of the client gave.
 */
export async function startOlderServer(): Promise<OlderServer> {
  const silent = new Set<string>()
  const received: { session: number; message: Message }[] = []
  const all = new Map<number, ServerResponse>()
  const asked = new Map<string, (answer: unknown) => void>()
  const timers = new Set<NodeJS.Timeout>()
  let streams = 0

  const serve = (session: number, message: Message): void => {
    const stream = all.get(session)
    const send = (one: object) =>
      stream?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...one })}\n\n`)
    const { id, method = '', params } = message
    const answer = (result: object) => send({ id, result })
    const say = (text: string) => answer({ content: [{ type: 'text', text }] })
    if (message.method === undefined) asked.get(`${session} ${String(id)}`)?.(message.result)
    if (id === undefined || message.method === undefined || silent.has(method)) return
    if (method === 'initialize') {
      const serverInfo = { name: 'older', version: '1' }
      answer({ protocolVersion: '2024-11-05', capabilities, serverInfo })
    } else if (method === 'tools/list') {
      answer({ tools: [{ name: 'who', inputSchema: { type: 'object' } }] })
    } else if (params?.name === 'who') say(String(session))
    else if (params?.name === 'steps') {
      const progress = { progressToken: 'steps', progress: 1 }
      const step = () => send({ method: 'notifications/progress', params: progress })
      timers.add(setInterval(step, 100))
    } else if (params?.name === 'ask') {
      // Like the SDKs, each session counts its own requests.
      asked.set(`${session} 0`, (result) => say(`${session}: ${JSON.stringify(result)}`))
      send({ id: 0, method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } })
    } else if (params?.name !== 'never') answer({})
  }

  const http = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://localhost')
    if (request.method === 'GET') {
      const session = ++streams
      all.set(session, response)
      response.on('close', () => all.delete(session))
      response.writeHead(200, events)
      response.write(`event: endpoint\ndata: /messages?session=${session}\n\n`)
      return
    }
    let text = ''
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    request.on('end', () => {
      const session = Number(url.searchParams.get('session'))
      if (!all.has(session)) {
        response.writeHead(404).end()
        return
      }
      response.writeHead(202).end('Accepted')
      const message = JSON.parse(text) as Message
      received.push({ session, message })
      serve(session, message)
    })
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return {
    port: (http.address() as AddressInfo).port,
    silent,
    received,
    get streams() {
      return streams
    },
    get open() {
      return all.size
    },
    drop: () => {
      for (const stream of [...all.values()]) stream.destroy()
    },
    close: () => {
      for (const timer of timers) clearInterval(timer)
      return new Promise<void>((resolve) => {
        http.close(() => resolve())
        http.closeAllConnections()
      })
    },
  }
}
