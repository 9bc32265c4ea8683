import { type Infer, integer, object, optional, required, text } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { type Compiled, definePolicy } from '../define.ts'
import type { DirectResponseConfig } from './apply.ts'

const directResponseSchema = object('DirectResponse', {
  status: required(integer({ min: 200, max: 599 }), 'Status code of the answer.'),
  body: optional(text({ min: 1, max: 4096 }), 'Body of the answer; no body where unset.'),
})
type DirectResponseSpec = Infer<typeof directResponseSchema>

const directResponseField = sectionField({
  section: 'traffic',
  field: 'directResponse',
  schema: directResponseSchema,
  doc: 'Answers the request without a backend.',
})

/** `traffic.directResponse`; the schema has checked the bounds. */
function compile({ status, body }: DirectResponseSpec): Compiled<DirectResponseConfig> {
  return { config: { status, body }, problems: [] }
}

/** Answers every request with a configured status and body, without a backend. */
export const directResponse = definePolicy(directResponseField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  answers: true,
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
