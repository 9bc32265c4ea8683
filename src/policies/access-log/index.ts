import { type Infer, object, optional } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { logTracingAttributes } from '../../schema/shapes/telemetry.ts'
import { celExpression } from '../../schema/strings.ts'
import { type Compiled, definePolicy } from '../define.ts'
import type { AccessLogConfig } from './apply.ts'

const accessLogSchema = object('AccessLog', {
  filter: optional(celExpression, 'A line is written only where this is true.'),
  attributes: optional(logTracingAttributes, 'Changes to the fields of a line.'),
})
type AccessLogSpec = Infer<typeof accessLogSchema>

const accessLogField = sectionField({
  section: 'frontend',
  field: 'accessLog',
  schema: accessLogSchema,
  doc: 'What the access log has.',
})

/** Expressions are checked wherever the schema has one, so nothing is left to find here. */
function compile({ filter, attributes }: AccessLogSpec): Compiled<AccessLogConfig> {
  const config = {
    ...(filter !== undefined && { filter }),
    ...(attributes !== undefined && { attributes }),
  }
  return { config, problems: [] }
}

/** Decides which lines the access log has, and what stands in them. */
export const accessLog = definePolicy(accessLogField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
