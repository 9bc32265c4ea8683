/** A small MCP client (Streamable HTTP), whose requests go through the process of the page. */
import { jsonValues, type PageRequest, type PageResponse, sendThrough } from './send.ts'
import type { ConsoleServer } from './server.ts'

const protocolVersion = '2025-06-18'

export interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly default?: unknown
}

export interface McpTool {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema?: JsonSchema
}

/** Where a server is, as clients of the gateway name it. */
interface McpPlace extends Pick<PageRequest, 'scheme' | 'port' | 'path'> {
  readonly host: string
}

export interface McpExchange {
  readonly request: PageRequest
  readonly response: PageResponse
}

interface Answer {
  readonly id?: unknown
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly message?: string }
}

/** Maximum number of pages of a list. */
const maxPages = 20

export class McpClient {
  readonly #server: ConsoleServer
  readonly #place: McpPlace
  readonly #headers: Readonly<Record<string, string>>
  /** Called with each exchange. */
  readonly #onExchange: (exchange: McpExchange) => void
  #session: string | undefined
  #lastId = 0

  constructor(
    server: ConsoleServer,
    place: McpPlace,
    headers: Readonly<Record<string, string>>,
    onExchange: (exchange: McpExchange) => void,
  ) {
    this.#server = server
    this.#place = place
    this.#headers = headers
    this.#onExchange = onExchange
  }

  /** Begins a session and lists the tools that the gateway shows. @throws Error */
  async tools(signal: AbortSignal): Promise<readonly McpTool[]> {
    const clientInfo = { name: 'sluice-console', version: '1' }
    const { response } = await this.#ask(
      'initialize',
      { protocolVersion, capabilities: {}, clientInfo },
      signal,
    )
    this.#session = response.headers['mcp-session-id']
    await this.#send('POST', { method: 'notifications/initialized' }, signal)
    const tools: McpTool[] = []
    let cursor: unknown
    for (let page = 0; page < maxPages; page++) {
      const params = cursor === undefined ? {} : { cursor }
      const { result } = await this.#ask('tools/list', params, signal)
      tools.push(...((result.tools as readonly McpTool[] | undefined) ?? []))
      cursor = result.nextCursor
      if (cursor === undefined) break
    }
    return tools
  }

  /** Calls a tool, and returns the result. @throws Error */
  async call(name: string, args: object, signal: AbortSignal) {
    return (await this.#ask('tools/call', { name, arguments: args }, signal)).result
  }

  /** Ends the session, if there is one. */
  async close(): Promise<void> {
    if (this.#session === undefined) return
    await this.#send('DELETE', undefined, new AbortController().signal).catch(() => undefined)
    this.#session = undefined
  }

  async #ask(method: string, params: object, signal: AbortSignal) {
    const id = ++this.#lastId
    const response = await this.#send('POST', { id, method, params }, signal)
    const answers = jsonValues(response) as readonly Answer[]
    const answer = answers.find((one) => one.id === id)
    if (answer?.error !== undefined) throw new Error(answer.error.message ?? 'error')
    if (answer?.result === undefined) {
      const text = response.body.slice(0, 200)
      throw new Error(response.problem ?? `The gateway answered ${response.status}: ${text}`)
    }
    return { response, result: answer.result }
  }

  async #send(
    method: 'POST' | 'DELETE',
    message: object | undefined,
    signal: AbortSignal,
  ): Promise<PageResponse> {
    const { scheme, port, host, path } = this.#place
    const session = this.#session
    const request: PageRequest = {
      scheme,
      port,
      method,
      path: path === '' ? '/' : path,
      headers: {
        host,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...this.#headers,
        ...(session !== undefined && {
          'mcp-session-id': session,
          'mcp-protocol-version': protocolVersion,
        }),
      },
      ...(message !== undefined && { body: JSON.stringify({ jsonrpc: '2.0', ...message }) }),
    }
    return sendThrough(this.#server, request, signal, (response) =>
      this.#onExchange({ request, response }),
    )
  }
}
