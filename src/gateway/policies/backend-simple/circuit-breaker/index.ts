import { integer, object, optional } from '../../../../ground/schema/field.ts'
import { atLeastOneOf } from '../../../../ground/schema/rules.ts'
import { definePolicy } from '../../define.ts'

const limit = integer({ min: 0, max: 1_000_000 })

const schema = object(
  'CircuitBreaker',
  {
    maxParallelRequests: optional(
      limit,
      'Maximum number of requests to the backend at the same time. Further ones fail with 503 at once.',
    ),
    maxParallelRetries: optional(
      limit,
      'Maximum number of requests that are being retried at the same time. Others are not retried.',
    ),
  },
  { rules: [atLeastOneOf('maxParallelRequests', 'maxParallelRetries')] },
)

/** Limits what one proxy sends to a backend at the same time, counted over its workers. */
export const backendCircuitBreaker = definePolicy({
  section: 'backend',
  field: 'circuitBreaker',
  schema,
  doc: 'Limits what each proxy sends to a backend at the same time. Nothing waits in a queue.',
  security: false,
  compile: (config) => ({ config, problems: [] }),
  apply: () => import('./apply.ts'),
})
