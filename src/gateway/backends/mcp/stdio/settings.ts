/** MCP servers that are commands (stdio), as the control plane, proxies and the host of the servers see them. */

/**
 * Which requests share a process of the server.
 * - `Session`: each session has its own.
 * - `Principal`: the sessions of one principal; sessions without verified credentials have their own.
 * - `Shared`: all.
 */
type StdioScope = 'Session' | 'Principal' | 'Shared'

interface StdioSettings {
  /** The program and its arguments. No shell reads them. */
  readonly command: readonly [string, ...string[]]
  /** If omitted, each process gets a folder of its own. */
  readonly workingDirectory?: string
  readonly scope: StdioScope
  /** Whether the server may use the network. */
  readonly network: boolean
  readonly limits: StdioLimits
}

interface StdioLimits {
  /** Memory of a process and its children. */
  readonly memoryBytes: number
  readonly openFiles: number
  /** Processes of one server process, including itself. */
  readonly processes: number
  /** Server processes of the target at a time. */
  readonly instances: number
  /** How long the server may take to answer a request. */
  readonly timeoutMs: number
  /** Longest line that the server may write. */
  readonly messageBytes: number
}

/** The value of a variable: written in the spec, or the digest of an entry of a Secret. */
type StdioVariable = { readonly name: string } & (
  | { readonly value: string }
  | { readonly secret: string }
)

/** What the control plane sends to proxies, as JSON. */
export interface StdioTarget extends StdioSettings {
  readonly env: readonly StdioVariable[]
}

/** What proxies send to the host of the servers. */
export interface StdioServer extends StdioSettings {
  /** `namespace/backend/target`, for the log. */
  readonly label: string
  readonly env: Readonly<Record<string, string>>
}

/** Headers of requests to the host. */
export const stdioHeaders = { token: 'sluice-stdio-token', principal: 'sluice-principal' } as const

/** Where the host serves the protocol for a server, and where it learns of the server. */
export const serverPath = (id: string): string => `/servers/${id}`
export const definitionPath = (id: string): string => `/definitions/${id}`
