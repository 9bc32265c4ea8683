import type { VerificationKey } from '../../auth/jwt/key-set.ts'
import type { CalloutTarget } from '../../exchange/exchange.ts'
import type { AuthorizationConfig } from '../../policies/authorization/config.ts'

/** Version 1. `backend.mcp` in the form that the proxy receives. */
export interface BackendMcpConfig {
  readonly authorization?: AuthorizationConfig
  readonly authentication?: McpAuthenticationConfig
}

/** Identity providers whose deviations are made up for. */
export type McpIdp = 'IdpA' | 'IdpB'

export interface McpAuthenticationConfig {
  readonly mode: 'Strict' | 'Optional' | 'Permissive'
  /** Absent: not checked. */
  readonly issuer?: string
  /** Absent: any. */
  readonly audiences?: readonly string[]
  /** Public; without any no token is believed. */
  readonly keys: readonly VerificationKey[]
  readonly provider?: McpIdp
  /** Members of the metadata document, as it is written: keys in snake case, values in JSON. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** The server of the keys, which is asked for the metadata of the issuer first. */
  readonly target?: CalloutTarget
}
