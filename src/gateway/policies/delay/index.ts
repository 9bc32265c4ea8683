import { object, required } from '../../../ground/schema/field.ts'
import { durationOrExpression } from '../../../ground/schema/strings.ts'
import { definePolicy } from '../define.ts'

/** Lets requests wait, for tests of clients and of timeouts. */
export const delay = definePolicy({
  section: 'traffic',
  field: 'delay',
  schema: object('Delay', {
    duration: required(
      durationOrExpression,
      'How long a request waits, at most 1h: a duration such as 200ms, or an expression that gives a duration or a number of milliseconds. A request for which the expression fails does not wait.',
    ),
  }),
  doc: 'Lets requests wait before they are forwarded or answered.',
  security: false,
  changesRequest: false,
  endsRequest: false,
  conditional: 'at most one',
  expressions: [{ path: '', point: 'traffic' }],
  compile: (config) => ({ config, problems: [] }),
  apply: () => import('./apply.ts'),
})
