import type { VerificationKey } from '../../../auth/jwt/key-set.ts'
import {
  anything,
  choice,
  list,
  map,
  optional,
  record,
  type Shape,
  text,
} from '../../../base/shape.ts'
import type { CalloutTarget } from '../../../exchange/exchange.ts'
import { calloutTarget } from '../../../model/shapes.ts'
import type { AuthorizationConfig } from '../../../policies/authorization/config.ts'
import { shape as authorization } from '../../../policies/authorization/config.ts'
import { verificationKey } from '../../../policies/jwt-authentication/config.ts'

/** Version 1. `backend.mcp` in the form that the proxy receives. */
export interface BackendMcpConfig {
  readonly authorization?: AuthorizationConfig
  readonly authentication?: McpAuthenticationConfig
}

/** Identity providers whose deviations are made up for. */
type McpIdp = 'IdpA' | 'IdpB'

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

const authentication: Shape<McpAuthenticationConfig> = record({
  mode: choice('Strict', 'Optional', 'Permissive'),
  issuer: optional(text),
  audiences: optional(list(text)),
  keys: list(verificationKey),
  provider: optional(choice('IdpA', 'IdpB')),
  metadata: map(anything),
  target: optional(calloutTarget),
})

export const shape: Shape<BackendMcpConfig> = record({
  authorization: optional(authorization),
  authentication: optional(authentication),
})
