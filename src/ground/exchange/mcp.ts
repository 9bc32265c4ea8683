/** Rules for what MCP clients may do. Types only. */
import type { Exchange } from './exchange.ts'

/** What rules can name. A resource template counts as a resource whose name is the URI template. */
export type McpItemType = 'tool' | 'prompt' | 'resource'

/** One tool, prompt or resource of a target, by the name or URI that the target itself uses. */
export interface McpItem {
  readonly type: McpItemType
  readonly target: string
  readonly name: string
}

/**
 * An item of a target that a client wants to use, or that would be listed for it.
 * Expressions read the same from `exchange.learned.mcp`:
 *
 *   mcp.method, mcp.methodName   `tools/call`, `tools/list` …
 *   mcp.sessionId                not set without a session
 *   mcp.target                   the target's name
 *   mcp.tool.name, mcp.tool.target, mcp.tool.arguments
 *   mcp.prompt.name, mcp.prompt.target, mcp.prompt.arguments
 *   mcp.resource.name, mcp.resource.uri, mcp.resource.target
 *
 * Only one of tool, prompt and resource is set. Its arguments are set for calls, not for lists.
 */
interface McpUse {
  /** Method of the client's message. */
  readonly method: string
  readonly item: McpItem
  /** Whether the item would be listed; otherwise the client wants to use it. */
  readonly isListed: boolean
}

/** What `backend.mcp` does in addition to the phases that every policy has. */
export interface McpRules {
  /**
   * Returns why the client may not use the item, or see it in a list; undefined if it may. Called once per
   * item, with the rules for its target. Must not throw, and must not keep the exchange.
   */
  refusal(exchange: Exchange, use: McpUse): string | undefined
}
