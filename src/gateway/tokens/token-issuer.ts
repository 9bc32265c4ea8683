import { algorithms } from '../../engines/auth/jwt/key-set.ts'
import {
  choice,
  flag,
  type Infer,
  list,
  map,
  optional,
  record,
  text,
} from '../../ground/base/shape.ts'
import { introspectionShape } from './introspection.ts'

/** A public key in the compiled form of policies. */
export const verificationKey = record({
  kid: optional(text),
  algorithms: list(choice(...algorithms)),
  jwk: map(text),
})

/** An issuer of tokens in the compiled form of policies. If it has neither keys nor introspection, its tokens are rejected. */
export const issuerShape = record({
  issuer: optional(text),
  audiences: optional(list(text)),
  /** Whether `client_id` of a token without `aud` is its audience. */
  isClientAudience: optional(flag),
  requiredClaims: optional(list(text)),
  keys: list(verificationKey),
  /** Set if the issuer is asked about its tokens in place of keys. */
  introspection: optional(introspectionShape),
})
export type TokenIssuer = Infer<typeof issuerShape>
