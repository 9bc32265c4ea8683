/** The transport to servers that speak streamable HTTP, and to those that the gateway runs. */
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { StdioTransport } from '../transport/stdio-transport.ts'
import { StreamableTransport, type TargetWire } from '../transport/streamable.ts'

export function httpTransport(
  exchange: McpExchange,
  entry: McpTargetEntry,
  wire: TargetWire,
): StreamableTransport {
  return entry.target.stdio === undefined
    ? new StreamableTransport(exchange, entry, wire)
    : new StdioTransport(exchange, entry, wire)
}
