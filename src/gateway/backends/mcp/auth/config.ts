import type { VerificationKey } from '../../../../engines/auth/jwt/key-set.ts'
import {
  anything,
  choice,
  list,
  map,
  optional,
  record,
  text,
} from '../../../../ground/base/shape.ts'
import type { CalloutTarget } from '../../../../ground/exchange/exchange.ts'
import { calloutTarget } from '../../../../ground/model/shapes.ts'
import { verificationKey } from '../../../tokens/token-issuer.ts'
import { type McpIdp, providerNames } from './providers.ts'

/** How MCP clients find the authorization server and sign in there. */
export interface McpSignInConfig {
  /** Issuer of the tokens. If omitted, clients find no authorization server. */
  readonly issuer?: string
  readonly audiences?: readonly string[]
  readonly provider?: McpIdp
  /** Client id that all clients get, because the provider registers none. */
  readonly clientId?: string
  /** Digest of the secret of `clientId`. */
  readonly clientSecret?: string
  /** Members of the metadata document, with names in snake case. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** The server of the JWKS. The gateway requests the issuer's metadata from it first. */
  readonly target?: CalloutTarget
}

export interface McpAuthenticationConfig extends McpSignInConfig {
  readonly mode: 'Strict' | 'Optional' | 'Permissive'
  /** Public keys; without any, all tokens are rejected. */
  readonly keys: readonly VerificationKey[]
}

const signIn = {
  issuer: optional(text),
  audiences: optional(list(text)),
  provider: optional(choice(...providerNames)),
  clientId: optional(text),
  clientSecret: optional(text),
  metadata: map(anything),
  target: optional(calloutTarget),
}

export const signInShape = record<McpSignInConfig>(signIn)

export const shape = record<McpAuthenticationConfig>({
  ...signIn,
  mode: choice('Strict', 'Optional', 'Permissive'),
  keys: list(verificationKey),
})
