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

/** Identity providers that need adaptations. */
type McpIdp = 'IdpA' | 'IdpB'

export interface McpAuthenticationConfig {
  readonly mode: 'Strict' | 'Optional' | 'Permissive'
  /** Required issuer; not checked if omitted. */
  readonly issuer?: string
  /** Accepted audiences; all are accepted if omitted. */
  readonly audiences?: readonly string[]
  /** Public keys; without any, all tokens are rejected. */
  readonly keys: readonly VerificationKey[]
  readonly provider?: McpIdp
  /** Members of the metadata document, with names in snake case. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** The server of the JWKS. The gateway requests the issuer's metadata from it first. */
  readonly target?: CalloutTarget
}

export const shape = record<McpAuthenticationConfig>({
  mode: choice('Strict', 'Optional', 'Permissive'),
  issuer: optional(text),
  audiences: optional(list(text)),
  keys: list(verificationKey),
  provider: optional(choice('IdpA', 'IdpB')),
  metadata: map(anything),
  target: optional(calloutTarget),
})
