/** The retry rule of the Gateway API (HTTPRoute, GEP-1731). */
import { integer, list, object, optional } from '../field.ts'
import { durationOrZero } from '../strings.ts'

export const retryRule = object('Retry', {
  codes: optional(list(integer({ min: 400, max: 599 }), { max: 200, unique: 'value' }), {
    doc: 'Response codes after which the request is sent again; connection failures always count.',
  }),
  attempts: optional(integer({ min: 1 }), 'How many times a request is sent again at most.'),
  backoff: optional(durationOrZero, 'Shortest wait before a request is sent again.'),
})
