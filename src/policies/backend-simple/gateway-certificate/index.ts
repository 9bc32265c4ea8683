import { object } from '../../../schema/field.ts'
import { sectionField } from '../../../schema/section-field.ts'
import { definePolicy } from '../../define.ts'

/**
 * Nobody writes it in a policy: it is made of the Gateway. As a policy on the Gateway it reaches the
 * proxies of that Gateway alone, with the values of its Secret, and is renewed like any other.
 */
export const gatewayCertificate = definePolicy(
  sectionField({
    section: 'backend',
    field: 'gatewayCertificate',
    schema: object('GatewayCertificate', {}),
    doc: 'Certificate that a Gateway presents to backends.',
  }),
  {
    security: true,
    preRouting: false,
    merge: 'replace',
    configVersion: 1,
    apply: () => import('./apply.ts'),
  },
)
