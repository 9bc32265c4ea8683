import { parseDurationMs } from '../../../ground/base/duration.ts'
import { integer, object, optional } from '../../../ground/schema/field.ts'
import { retryFields } from '../../../ground/schema/shapes/retry.ts'
import { celExpression, duration } from '../../../ground/schema/strings.ts'
import { definePolicy } from '../define.ts'

const defaultIntervalMs = 10_000
const defaultPercent = 20
const defaultRate = { count: 10, intervalMs: 1_000 }

const budget = object('RetryBudget', {
  percent: optional(integer({ min: 0, max: 100 }), {
    doc: 'Maximum number of retries, in percent of the requests in the interval.',
    default: defaultPercent,
  }),
  interval: optional(duration, {
    doc: 'Time over which requests and retries are counted.',
    default: '10s',
  }),
  minRetryRate: optional(
    object('RetryRate', {
      count: optional(integer({ min: 0, max: 1_000_000 }), {
        doc: 'Number of retries.',
        default: defaultRate.count,
      }),
      interval: optional(duration, { doc: 'Length of the period.', default: '1s' }),
    }),
    'Number of retries that the budget always permits, even if there are few requests. Default: 10 in 1s.',
  ),
})

const retrySchema = object('Retry', {
  ...retryFields,
  precondition: optional(
    celExpression,
    'Only requests for which this is true are retried, such as request.method == "GET".',
  ),
  condition: optional(
    celExpression,
    'Requests are retried if this is true for the response, as well as after a response with one of the codes.',
  ),
  budget: optional(
    budget,
    'Limits the retries of all requests to which the policy applies, so that they do not add load to backends that fail. Each worker counts separately.',
  ),
})

/** Retries requests whose attempt failed, if no part of the response has been sent to the client. */
export const retry = definePolicy({
  section: 'traffic',
  field: 'retry',
  schema: retrySchema,
  doc: 'Retries failed requests (HTTPRoute retry).',
  security: false,
  changesRequest: false,
  endsRequest: false,
  conditional: 'at most one',
  expressions: [
    { path: 'condition', point: 'health' },
    { path: '', point: 'traffic' },
  ],
  compile({ codes = [], attempts = 1, backoff, precondition, condition, budget: limit }) {
    const { count = defaultRate.count, interval } = limit?.minRetryRate ?? {}
    const config = {
      codes,
      attempts,
      backoffMs: parseDurationMs(backoff) ?? 0,
      ...(precondition !== undefined && { precondition }),
      ...(condition !== undefined && { condition }),
      ...(limit && {
        budget: {
          percent: limit.percent ?? defaultPercent,
          intervalMs: parseDurationMs(limit.interval) ?? defaultIntervalMs,
          minRetries: { count, intervalMs: parseDurationMs(interval) ?? defaultRate.intervalMs },
        },
      }),
    }
    return { config, problems: [] }
  },
  apply: () => import('./apply.ts'),
})
