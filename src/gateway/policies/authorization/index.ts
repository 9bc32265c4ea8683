import type { Infer } from '../../../ground/schema/field.ts'
import { authorization as schema } from '../../../ground/schema/shapes/authentication.ts'
import { type Compiled, definePolicy } from '../define.ts'
import type { AuthorizationConfig } from './rules.ts'

/** Expressions are checked for all kinds in derive/expressions.ts, so nothing is left to check here. */
export function compile({
  action = 'Allow',
  policy,
}: Infer<typeof schema>): Compiled<AuthorizationConfig> {
  return { config: { action, expressions: policy.matchExpressions }, problems: [] }
}

/** Allows or refuses requests by expressions. The rules of all policies that apply are combined. */
export const authorization = definePolicy({
  section: 'traffic',
  field: 'authorization',
  schema,
  doc: 'Allows or refuses requests by expressions, after authentication. The rules of all policies that apply are combined.',
  security: true,
  changesRequest: false,
  preRouting: true,
  merge: 'append',
  expressions: [{ path: '', point: 'traffic', early: 'earlyAuthorization' }],
  compile,
  apply: () => import('./apply.ts'),
})
