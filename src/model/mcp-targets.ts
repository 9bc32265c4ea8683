/** MCP servers behind a GatewayBackend, in the words of the interface. */

export type McpProtocol = 'StreamableHTTP' | 'SSE'

export interface McpTarget {
  /** What clients see of it where there are several; unique in its backend, without `_`. */
  readonly name: string
  /** What policies may call it. */
  readonly sections: readonly string[]
  readonly protocol: McpProtocol
  /** Path, and a query where one was written. */
  readonly path: string
  readonly destination: McpDestination
}

type McpDestination =
  | { readonly type: 'static'; readonly host: string; readonly port: number }
  | {
      readonly type: 'service'
      readonly namespace: string
      readonly name: string
      readonly port: number
    }

/**
 * The value that session ids are sealed with: every replica of a control plane derives the same one,
 * so proxies can carry on each other's sessions. It travels as secrets do, under this digest.
 */
export const sessionKeyRef = {
  namespace: '',
  name: 'mcp-session-key',
  key: 'key',
  digest: 'mcp-session-key',
} as const
