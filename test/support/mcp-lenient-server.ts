/** An MCP server that accepts malformed messages if it can, and answers as the test says. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly name?: string; readonly protocolVersion?: string }
}

export interface LenientServer {
  readonly port: number
  /** Bodies of all messages, in order. */
  readonly received: readonly string[]
  /** Values of `mcp-protocol-version`, in order. */
  readonly versions: readonly (string | undefined)[]
  /** Answers at paths other than that of messages, by path. */
  readonly documents: Map<string, object>
  /** Requests for these, such as `GET /path host`. */
  readonly asked: readonly string[]
  /** Text of the streams of GET requests. */
  stream: string
  /** Streams that answer `tools/call`, by tool name; `ID` is replaced by the id of the request. */
  readonly streams: Map<string, string>
  /** Results by method. */
  readonly results: Map<string, object>
  /** What `tools/call` of `ask` asks the client. */
  question: object
  close(): Promise<void>
}

const json = { 'content-type': 'application/json' }
const events = { 'content-type': 'text/event-stream' }

/** Starts one on a free loopback port. It echoes the version that `initialize` names. */
export async function startLenientServer(): Promise<LenientServer> {
  const received: string[] = []
  const versions: (string | undefined)[] = []
  const waiting = new Map<unknown, (text: string) => void>()
  const results = new Map<string, object>()
  const documents = new Map<string, object>()
  const asked: string[] = []
  const question: object = {}
  const streams = new Map<string, string>()
  const server = { stream: '', question, streams, results, documents, asked, received, versions }

  const ask = (response: ServerResponse, id: unknown): void => {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 'question', ...server.question })
    response.writeHead(200, events)
    response.write(`data: ${text}\n\n`)
    waiting.set('question', (answer) => {
      const result = { content: [{ type: 'text', text: answer }] }
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
    })
  }

  const serve = (text: string, response: ServerResponse): void => {
    const { id, method, params } = JSON.parse(text) as Message
    if (method === undefined) {
      waiting.get(id)?.(text)
      response.writeHead(202).end()
    } else if (method === 'initialize') {
      const capabilities = { tools: {}, prompts: {}, resources: {}, logging: {}, completions: {} }
      const serverInfo = { name: 'lenient', version: '1' }
      const result = { protocolVersion: params?.protocolVersion, capabilities, serverInfo }
      response.writeHead(200, { ...json, 'mcp-session-id': `session-${received.length}` })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    } else if (id === undefined) response.writeHead(202).end()
    else if (method === 'tools/call' && params?.name?.endsWith('ask')) ask(response, id)
    else if (method === 'tools/call' && streams.has(params?.name ?? '')) {
      const text = streams.get(params?.name ?? '') ?? ''
      response.writeHead(200, events).end(text.replaceAll('ID', JSON.stringify(id)))
    } else {
      const result = results.get(method) ?? {}
      response.writeHead(200, json).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    }
  }

  const http = createServer((request, response) => {
    const { method = '', url = '' } = request
    const document = documents.get(url)
    if (document !== undefined) {
      asked.push(`${method} ${url} ${request.headers.host}`)
      response.writeHead(200, json).end(JSON.stringify(document))
      return
    }
    versions.push(request.headers['mcp-protocol-version'] as string | undefined)
    if (method === 'GET') {
      response.writeHead(200, events)
      response.write(server.stream)
      return
    }
    let text = ''
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    request.on('end', () => {
      if (method === 'DELETE') response.end()
      else {
        received.push(text)
        serve(text, response)
      }
    })
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return Object.assign(server, {
    port: (http.address() as AddressInfo).port,
    close: () =>
      new Promise<void>((resolve) => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  })
}
