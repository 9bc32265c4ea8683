import { type Infer, object, optional } from '../../schema/field.ts'
import { atLeastOneOf } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { httpHeaderFilter } from '../../schema/shapes/headers.ts'

const headerModifiers = object(
  'HeaderModifiers',
  {
    request: optional(httpHeaderFilter, 'Changes to the request before it goes to the backend.'),
    response: optional(httpHeaderFilter, 'Changes to the response before it goes to the client.'),
  },
  { rules: [atLeastOneOf('request', 'response')] },
)
export type HeaderModifiersSpec = Infer<typeof headerModifiers>

export const headerModifiersField = sectionField({
  section: 'traffic',
  field: 'headerModifiers',
  schema: headerModifiers,
  doc: 'Sets, adds and removes header fields of requests and responses.',
})
