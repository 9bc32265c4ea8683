import type { Infer } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { authorization as authorizationShape } from '../../schema/shapes/authentication.ts'

const authorization = authorizationShape
export type AuthorizationSpec = Infer<typeof authorization>

export const authorizationField = sectionField({
  section: 'traffic',
  field: 'authorization',
  schema: authorization,
  doc: 'Allows or refuses requests by expressions, after authentication. Rules of all policies that apply are joined.',
})
