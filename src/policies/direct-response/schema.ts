import { type Infer, integer, object, optional, required, text } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'

const directResponse = object('DirectResponse', {
  status: required(integer({ min: 200, max: 599 }), 'Status code of the answer.'),
  body: optional(text({ min: 1, max: 4096 }), 'Body of the answer; no body where unset.'),
})
export type DirectResponseSpec = Infer<typeof directResponse>

export const directResponseField = sectionField({
  section: 'traffic',
  field: 'directResponse',
  schema: directResponse,
  doc: 'Answers the request without a backend.',
})
