/** The retry rule of the Gateway API (HTTPRoute, GEP-1731). */
import { integer, list, object, optional } from '../field.ts'
import { durationOrZero } from '../strings.ts'

export const retryFields = {
  codes: optional(list(integer({ min: 400, max: 599 }), { max: 200, unique: 'value' }), {
    doc: 'Response codes after which the request is retried. Connection failures are always retried.',
  }),
  attempts: optional(integer({ min: 1 }), 'Maximum number of retries.'),
  backoff: optional(durationOrZero, 'Minimum time before a retry.'),
} as const

export const retryRule = object('Retry', retryFields)
