import type { JwtProvider } from '../../auth/jwt/verifier.ts'

/** Version 1. */
export interface JwtAuthenticationConfig {
  readonly mode: 'Strict' | 'Optional' | 'Permissive'
  /** Keys are public; a provider without keys is believed nothing. */
  readonly providers: readonly JwtProvider[]
}
