import { object } from '../../../../ground/schema/field.ts'
import { definePolicy } from '../../define.ts'

/**
 * Users cannot set this policy: it is compiled from a Gateway, and targets it. It is thus sent only to the
 * proxies of that Gateway, with the values of its Secret, and is updated like any other policy.
 */
export const gatewayCertificate = definePolicy({
  section: 'backend',
  field: 'gatewayCertificate',
  schema: object('GatewayCertificate', {}),
  doc: 'Certificate that a Gateway presents to backends.',
  security: true,
  apply: () => import('./apply.ts'),
})
