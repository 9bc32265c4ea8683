/** The transport to targets of the modern era: MCP servers, and APIs whose tools the gateway serves itself. */
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { apiToolsOf } from '../target/api-tools.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { Transport } from '../target/transport.ts'
import { ApiTransport } from '../transport/api-transport.ts'
import { modernWire } from '../transport/streamable.ts'
import { httpTransport } from './http-transport.ts'

export function modernTransport(
  exchange: McpExchange,
  entry: McpTargetEntry,
  version: string,
): Transport {
  const tools = apiToolsOf(entry)
  return tools === undefined
    ? httpTransport(exchange, entry, modernWire(version))
    : new ApiTransport(exchange, entry, tools)
}
