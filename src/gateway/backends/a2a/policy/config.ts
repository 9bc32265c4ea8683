import type { VerificationKey } from '../../../../engines/auth/jwt/key-set.ts'
import { list, optional, record } from '../../../../ground/base/shape.ts'
import {
  type AuthorizationConfig,
  shape as authorization,
} from '../../../policies/authorization/rules.ts'
import { verificationKey } from '../../../tokens/token-issuer.ts'

/** Version 1 of `backend.a2a` as the proxy receives it. */
export interface BackendA2aConfig {
  readonly authorization?: AuthorizationConfig
  /** One of these keys must have signed the card. If there are none, no card is valid. */
  readonly cardKeys?: readonly VerificationKey[]
}

export const shape = record<BackendA2aConfig>({
  authorization: optional(authorization),
  cardKeys: optional(list(verificationKey)),
})
