import { choice, list, record, type Shape, text } from '../../base/shape.ts'
/** Version 1. */
export interface ApiKeyAuthenticationConfig {
  readonly mode: 'Strict' | 'Optional'
  /**
   * Digests of entries of Secrets, each a key as text, or JSON with `key` and `metadata`. Where
   * there is none, no key is valid.
   */
  readonly entries: readonly string[]
}

export const shape: Shape<ApiKeyAuthenticationConfig> = record({
  mode: choice('Strict', 'Optional'),
  entries: list(text),
})
