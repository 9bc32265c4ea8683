import { choice, list, record, type Shape, text } from '../../base/shape.ts'
/** Version 1: one rule. */
export interface AuthorizationConfig {
  readonly action: 'Allow' | 'Deny' | 'Require'
  /** The rule matches when any of them is true. */
  readonly expressions: readonly string[]
}

export const shape: Shape<AuthorizationConfig> = record({
  action: choice('Allow', 'Deny', 'Require'),
  expressions: list(text),
})
