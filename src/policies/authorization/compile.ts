import type { Compiled } from '../define.ts'
import type { AuthorizationConfig } from './config.ts'
import type { AuthorizationSpec } from './schema.ts'

/** Expressions are checked wherever the schema has one, so nothing is left to find here. */
export function compile(spec: AuthorizationSpec): Compiled<AuthorizationConfig> {
  const { action = 'Allow', policy } = spec
  return { config: { action, expressions: policy.matchExpressions }, problems: [] }
}
