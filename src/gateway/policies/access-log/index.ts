import { object, optional } from '../../../ground/schema/field.ts'
import { logTracingAttributes } from '../../../ground/schema/shapes/telemetry.ts'
import { celExpression } from '../../../ground/schema/strings.ts'
import { definePolicy } from '../define.ts'

/** Decides which requests are logged, and which attributes log entries have. */
export const accessLog = definePolicy({
  section: 'frontend',
  field: 'accessLog',
  schema: object('AccessLog', {
    filter: optional(celExpression, 'A line is written only if this is true.'),
    attributes: optional(logTracingAttributes, 'Changes to the fields of a line.'),
  }),
  doc: 'Fields and filter of the access log.',
  security: false,
  expressions: [{ path: '', point: 'observation' }],
  // Expressions are checked for all kinds in derive/expressions.ts, so nothing is left to check here.
  compile: ({ filter, attributes }) => ({ config: { filter, attributes }, problems: [] }),
  apply: () => import('./apply.ts'),
})
