import { object } from '../../../ground/schema/field.ts'
import { definePolicy } from '../define.ts'

/**
 * Users cannot set this policy: it is compiled from XAccessPolicies. All policies of all levels apply.
 */
export const access = definePolicy({
  section: 'traffic',
  field: 'access',
  schema: object('Access', {}),
  doc: 'Rules of XAccessPolicies.',
  security: true,
  merge: 'append',
  seesAllHeaders: true,
  apply: () => import('./apply.ts'),
})
