import { type Infer, object, optional } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { logTracingAttributes } from '../../schema/shapes/telemetry.ts'
import { celExpression } from '../../schema/strings.ts'

const accessLog = object('AccessLog', {
  filter: optional(celExpression, 'A line is written only where this is true.'),
  attributes: optional(logTracingAttributes, 'Changes to the fields of a line.'),
})
export type AccessLogSpec = Infer<typeof accessLog>

export const accessLogField = sectionField({
  section: 'frontend',
  field: 'accessLog',
  schema: accessLog,
  doc: 'What the access log has.',
})
