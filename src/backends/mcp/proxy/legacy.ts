/** How clients of the older transport (HTTP with SSE) are known. */
import type { McpExchange } from './mcp-exchange.ts'

const pathOf = ({ client }: McpExchange) => client.request.path

/** A stream without a session, from a path that says what it is. */
export function isLegacyStream(exchange: McpExchange): boolean {
  const { method, headers } = exchange.client.request
  return method === 'GET' && pathOf(exchange).endsWith('/sse') && !headers.has('mcp-session-id')
}

/** The session that such a client posts to; undefined where it is none of these. */
export function legacySession({ client, backend }: McpExchange): string | undefined {
  const { query, headers, method } = client.request
  if (query === undefined || method !== 'POST' || headers.has('mcp-session-id')) return undefined
  if (backend.isStateless) return undefined
  return new URLSearchParams(query).get('sessionId') ?? undefined
}
