import { parseDurationMs } from '../../base/duration.ts'
import type { Infer } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { retryRule } from '../../schema/shapes/retry.ts'
import { type Compiled, definePolicy } from '../define.ts'
import type { RetryConfig } from './apply.ts'

type RetrySpec = Infer<typeof retryRule>

const retryField = sectionField({
  section: 'traffic',
  field: 'retry',
  schema: retryRule,
  doc: 'Sends failed requests again (HTTPRoute retry).',
})

/** `traffic.retry`; the schema has checked the duration. One retry where the number is not given. */
function compile({ codes = [], attempts = 1, backoff }: RetrySpec): Compiled<RetryConfig> {
  const backoffMs = backoff === undefined ? undefined : parseDurationMs(backoff)
  return { config: { codes, attempts, backoffMs: backoffMs ?? 0 }, problems: [] }
}

/** Sends a request again whose attempt has failed, as long as nothing of its response was sent. */
export const retry = definePolicy(retryField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
