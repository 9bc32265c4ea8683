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
  /** Which tools clients get, and how they are presented. */
  readonly tools?: McpToolSelection
  /** Servers that are equal to that of a static destination, besides it. */
  readonly endpoints?: readonly { readonly host: string; readonly port: number }[]
  /** If omitted, `Off`. */
  readonly pinning?: Exclude<Pinning, 'Off'>
  readonly destination:
    | { readonly type: 'static'; readonly host: string; readonly port: number }
    | ServiceTarget
}

/** Which tools of a target clients get. Patterns have `*` for any text, and match the server's own names. */
export interface McpToolSelection {
  /** If empty, all tools. */
  readonly include: readonly string[]
  readonly exclude: readonly string[]
  readonly overrides: readonly McpToolOverride[]
}

/** How a tool is presented to clients. What is omitted stays as the server lists it. */
export interface McpToolOverride {
  /** The server's own name. */
  readonly name: string
  /** Name for clients, before a prefix is added. */
  readonly as?: string
  readonly title?: string
  readonly description?: string
  /** JSON of an object, whose members replace those of the server. */
  readonly annotations?: string
}

/**
 * Which names of tools and prompts get the name of their target as a prefix if there are several targets: all, those
 * that several targets have, or none.
 */
export type McpPrefixMode = 'Always' | 'Conditional' | 'Never'

/** The names of tools or prompts that a target has listed, as far as the log knows. */
export interface McpKnownNames {
  readonly target: string
  readonly list: McpList
  readonly names: readonly string[]
}

export interface McpToolSearch {
  /** Patterns of names for clients. These tools stay in the list. */
  readonly pinned: readonly string[]
  /** Maximum number of tools in a result. */
  readonly limit: number
}

/** A subset of the targets and tools of a backend. */
export interface McpVirtualServer {
  readonly name: string
  /** End of the request path. If omitted, requests with any other path. */
  readonly path?: string
  /** CEL. If omitted, all clients. */
  readonly expression?: string
  /** Section names of targets. If empty, all targets. */
  readonly targets: readonly string[]
  /** Patterns of names for clients. If empty, all tools. */
  readonly include: readonly string[]
  readonly exclude: readonly string[]
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
