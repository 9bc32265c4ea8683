/** How policies judge what MCP clients do. Types only. */
import type { Exchange } from './exchange.ts'

/** What rules can name one by one. A template is judged as the resource that its URI would be. */
export type McpItemType = 'tool' | 'prompt' | 'resource'

/** One tool, prompt or resource of one target, by the name or URI that the target itself gives it. */
export interface McpItem {
  readonly type: McpItemType
  readonly target: string
  readonly name: string
}

/**
 * Something of a target that a client wants to use, or would be shown. `exchange.learned.mcp` says
 * the same to expressions:
 *
 *   mcp.method, mcp.methodName   `tools/call`, `tools/list` …
 *   mcp.sessionId                absent where there is no session
 *   mcp.target                   the target's name
 *   mcp.tool.name, mcp.tool.target, mcp.tool.arguments
 *   mcp.prompt.name, mcp.prompt.target, mcp.prompt.arguments
 *   mcp.resource.name, mcp.resource.uri, mcp.resource.target
 *
 * Of the last three there is only the one at hand; arguments are there for calls, not in lists.
 */
interface McpUse {
  /** Method of the client's message. */
  readonly method: string
  readonly item: McpItem
  /** The item stands in a list: it is kept or left out. Else it is used, or refused. */
  readonly isListed: boolean
}

/** What `backend.mcp` does besides the phase that every policy has. */
export interface McpRules {
  /**
   * May the client use it, or see it in a list? Asked once for every item, with the rules that hold
   * for its target. Must not throw, and keeps nothing of the exchange.
   */
  allows(exchange: Exchange, use: McpUse): boolean
}
