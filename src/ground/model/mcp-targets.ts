/** MCP servers behind a GatewayBackend, in the form that proxies receive. */
import type { ServiceTarget } from './destinations.ts'
import type { McpList, Pinning } from './mcp-lists.ts'
import type { SecretRef } from './secret-ref.ts'

export type McpProtocol = 'StreamableHTTP' | 'SSE'

export interface McpTarget {
  /** Prefix of the target's tools if there are several targets. Unique in its backend; contains no `_`. */
  readonly name: string
  /** Section names by which policies can refer to the target. */
  readonly sections: readonly string[]
  readonly protocol: McpProtocol
  /** Path, with the query if there is one. */
  readonly path: string
  /** JSON of the OpenAPI document whose operations are the tools, with settings (`OpenApiSource`). */
  readonly openapi?: string
  /** JSON of the command that is the server, with settings (`StdioTarget`). Its destination is not used. */
  readonly stdio?: string
  /** The entries of Secrets whose values are in the environment of the command. */
  readonly secrets?: readonly SecretRef[]
  /** If omitted, `Off`. */
  readonly pinning?: Exclude<Pinning, 'Off'>
  readonly destination:
    | { readonly type: 'static'; readonly host: string; readonly port: number }
    | ServiceTarget
}

/** The approved versions of one list of a target with pinning `Block`. */
export interface McpPins {
  readonly target: string
  readonly list: McpList
  readonly items: readonly { readonly name: string; readonly digest: string }[]
}

/**
 * Reference to the key that encrypts session ids. Every replica of a control plane derives the same
 * key, so that a proxy can continue the sessions of another. It is sent like a secret with this digest.
 */
export const sessionKeyRef = {
  namespace: '',
  name: 'mcp-session-key',
  key: 'key',
  digest: 'mcp-session-key',
} as const
