import { algorithms } from '../../auth/jwt/key-set.ts'
import type { JwtProvider } from '../../auth/jwt/verifier.ts'
import { choice, list, map, optional, record, type Shape, text } from '../../base/shape.ts'

/** Version 1. */
export interface JwtAuthenticationConfig {
  readonly mode: 'Strict' | 'Optional' | 'Permissive'
  /** Keys are public; a provider without keys is believed nothing. */
  readonly providers: readonly JwtProvider[]
}

export const verificationKey: Shape<JwtProvider['keys'][number]> = record({
  kid: optional(text),
  algorithms: list(choice(...algorithms)),
  jwk: map(text),
})

const provider: Shape<JwtProvider> = record({
  issuer: optional(text),
  audiences: optional(list(text)),
  keys: list(verificationKey),
})

export const shape: Shape<JwtAuthenticationConfig> = record({
  mode: choice('Strict', 'Optional', 'Permissive'),
  providers: list(provider),
})
