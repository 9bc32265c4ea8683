import { object } from '../../../ground/schema/field.ts'
import { definePolicy } from '../define.ts'

/**
 * Users cannot set this policy: it is compiled from GatewayBudgets. All budgets of all levels apply.
 */
export const budgets = definePolicy({
  section: 'traffic',
  field: 'budgets',
  schema: object('Budgets', {}),
  doc: 'Budgets of GatewayBudgets.',
  security: true,
  merge: 'append',
  apply: () => import('./apply.ts'),
})
