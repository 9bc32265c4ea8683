import { parseDurationMs } from '../../base/duration.ts'
import { type Infer, object, optional } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { durationOrZero } from '../../schema/strings.ts'
import { type Compiled, definePolicy } from '../define.ts'
import type { TimeoutsConfig } from './apply.ts'

const timeoutsSchema = object('Timeouts', {
  request: optional(
    durationOrZero,
    'Time from the start of sending to the backend until the whole response is received, retries included; 0s means no limit.',
  ),
})
type TimeoutsSpec = Infer<typeof timeoutsSchema>

const timeoutsField = sectionField({
  section: 'traffic',
  field: 'timeouts',
  schema: timeoutsSchema,
  doc: 'Deadlines; in force for HTTPRoutes and their rules only.',
})

/** `traffic.timeouts`; the schema has checked the duration, so the problem is for other callers. */
function compile({ request }: TimeoutsSpec): Compiled<TimeoutsConfig> {
  if (request === undefined) return { config: {}, problems: [] }
  const requestMs = parseDurationMs(request)
  if (requestMs === undefined) {
    return { problems: [{ path: 'request', message: `${request} is not a duration` }] }
  }
  return { config: { requestMs }, problems: [] }
}

/** Limits the time from the first attempt until the whole response is received. */
export const timeouts = definePolicy(timeoutsField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  effectiveOn: ['HTTPRoute'],
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
