/** Version 1. */
export interface ApiKeyAuthenticationConfig {
  readonly mode: 'Strict' | 'Optional'
  /**
   * Digests of entries of Secrets, each a key as text, or JSON with `key` and `metadata`. Where
   * there is none, no key is valid.
   */
  readonly entries: readonly string[]
}
