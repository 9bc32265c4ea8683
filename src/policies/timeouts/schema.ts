import { type Infer, object, optional } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { durationOrZero } from '../../schema/strings.ts'

const timeouts = object('Timeouts', {
  request: optional(
    durationOrZero,
    'Time from the start of sending to the backend until the whole response is received, retries included; 0s means no limit.',
  ),
})
export type TimeoutsSpec = Infer<typeof timeouts>

export const timeoutsField = sectionField({
  section: 'traffic',
  field: 'timeouts',
  schema: timeouts,
  doc: 'Deadlines; in force for HTTPRoutes and their rules only.',
})
