/** An MCP server that refuses messages, GET or sessions as tests say. */
import { createServer, type ServerResponse } from 'node:http'

export interface RefusedMessage {
  readonly verb: string
  readonly id?: unknown
  readonly method?: string
  readonly session: string | undefined
  /** The header `Last-Event-ID`. */
  readonly from: string | undefined
}

export type Reply = (response: ServerResponse, message: RefusedMessage) => void

export const send = (response: ServerResponse, status: number, body = '') => {
  const type = /^\{|^null$/.test(body) ? 'application/json' : 'text/plain'
  response.writeHead(status, body === '' ? {} : { 'content-type': type }).end(body)
}
export const error = (code: number, message: string, id: unknown = null) =>
  JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } })

/** A server with sessions, which tests make refuse methods, `GET`, or sessions. */
export class RefusingServer {
  readonly seen: RefusedMessage[] = []
  readonly replies = new Map<string, Reply>()
  readonly lost = new Set<string>()
  isStateless = false
  #count = 0
  readonly http = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const body = (text === '' ? {} : JSON.parse(text)) as Pick<RefusedMessage, 'id' | 'method'>
    const session = request.headers['mcp-session-id'] as string | undefined
    const from = request.headers['last-event-id'] as string | undefined
    const message = { ...body, verb: request.method ?? '', session, from }
    this.seen.push(message)
    const reply = this.replies.get(body.method ?? message.verb)
    if (body.method === 'initialize' && reply === undefined) this.#begin(response, message)
    else if (session !== undefined && this.lost.has(session)) {
      send(response, 404, error(-32001, 'Session not found'))
    } else if (reply !== undefined) reply(response, message)
    else if (message.verb === 'GET') send(response, 405)
    else if (body.id === undefined) send(response, 202)
    else {
      const result = { tools: [{ name: 'who' }], content: [{ type: 'text', text: session ?? '' }] }
      send(response, 200, JSON.stringify({ jsonrpc: '2.0', id: body.id, result }))
    }
  })

  #begin(response: ServerResponse, { id }: RefusedMessage): void {
    this.#count += 1
    const capabilities = { tools: {}, logging: {}, resources: { subscribe: true } }
    const serverInfo = { name: 'refusing', version: '1' }
    const result = { protocolVersion: '2025-06-18', capabilities, serverInfo }
    if (!this.isStateless) response.setHeader('mcp-session-id', `s-${this.#count}`)
    send(response, 200, JSON.stringify({ jsonrpc: '2.0', id, result }))
  }

  reset(): void {
    this.seen.length = 0
    this.replies.clear()
    this.lost.clear()
    this.isStateless = false
  }

  count(what: string): number {
    return this.seen.filter(({ verb, method }) => method === what || verb === what).length
  }
}
