import { parseDurationMs } from '../../../ground/base/duration.ts'
import { object, optional } from '../../../ground/schema/field.ts'
import { durationOrZero } from '../../../ground/schema/strings.ts'
import { definePolicy } from '../define.ts'

/** Limits the time from the first attempt until the whole response is received. */
export const timeouts = definePolicy({
  section: 'traffic',
  field: 'timeouts',
  schema: object('Timeouts', {
    request: optional(
      durationOrZero,
      'Time from the start of sending to the backend until the whole response is received, retries included; 0s means no limit.',
    ),
  }),
  doc: 'Timeouts of requests. They apply to HTTPRoutes and their rules only.',
  security: false,
  changesRequest: false,
  endsRequest: false,
  conditional: 'at most one',
  effectiveOn: ['HTTPRoute'],
  compile: ({ request }) => ({ config: { requestMs: parseDurationMs(request) }, problems: [] }),
  apply: () => import('./apply.ts'),
})
