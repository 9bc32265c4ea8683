import { type Infer, list, object, optional, required } from '../../schema/field.ts'
import { atLeastOneOf } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { celExpression, headerName } from '../../schema/strings.ts'

const headerTransformation = object('HeaderTransformation', {
  name: required(headerName, 'Field name, or a pseudo-header.'),
  value: required(celExpression, 'Value of the field.'),
})

const headerTransformations = list(headerTransformation, { min: 1, max: 16 })

const transform = object(
  'Transform',
  {
    set: optional(headerTransformations, 'Headers that replace the values that are there.'),
    add: optional(headerTransformations, 'Headers that are added to the values that are there.'),
    remove: optional(list(headerName, { min: 1, max: 16 }), 'Headers that are removed.'),
    body: optional(celExpression, 'New body.'),
  },
  { rules: [atLeastOneOf('set', 'add', 'remove', 'body')] },
)

const transformation = object(
  'Transformation',
  {
    request: optional(transform, 'Changes to the request.'),
    response: optional(transform, 'Changes to the response.'),
  },
  { rules: [atLeastOneOf('request', 'response')] },
)
export type TransformationSpec = Infer<typeof transformation>

export const transformationField = sectionField({
  section: 'traffic',
  field: 'transformation',
  schema: transformation,
  doc: 'Changes headers and bodies by expressions.',
})
