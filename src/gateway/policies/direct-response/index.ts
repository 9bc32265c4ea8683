import { integer, object, optional, required, text } from '../../../ground/schema/field.ts'
import { definePolicy } from '../define.ts'

/** Answers all requests with a configured status and body; no backend is called. */
export const directResponse = definePolicy({
  section: 'traffic',
  field: 'directResponse',
  schema: object('DirectResponse', {
    status: required(integer({ min: 200, max: 599 }), 'Status code of the answer.'),
    body: optional(text({ min: 1, max: 4096 }), 'Body of the answer; no body if not set.'),
  }),
  doc: 'Answers the request without a backend.',
  security: false,
  conditional: 'at most one',
  answers: true,
  compile: ({ status, body }) => ({ config: { status, body }, problems: [] }),
  apply: () => import('./apply.ts'),
})
