/** Version 1: one rule. */
export interface AuthorizationConfig {
  readonly action: 'Allow' | 'Deny' | 'Require'
  /** The rule matches when any of them is true. */
  readonly expressions: readonly string[]
}
