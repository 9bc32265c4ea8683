import { parseDurationMs } from '../../../ground/base/duration.ts'
import { retryRule } from '../../../ground/schema/shapes/retry.ts'
import { definePolicy } from '../define.ts'

/** Retries requests whose attempt failed, if no part of the response has been sent to the client. */
export const retry = definePolicy({
  section: 'traffic',
  field: 'retry',
  schema: retryRule,
  doc: 'Retries failed requests (HTTPRoute retry).',
  security: false,
  conditional: 'at most one',
  compile: ({ codes = [], attempts = 1, backoff }) => ({
    config: { codes, attempts, backoffMs: parseDurationMs(backoff) ?? 0 },
    problems: [],
  }),
  apply: () => import('./apply.ts'),
})
