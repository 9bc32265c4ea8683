import { parseDurationMs } from '../../base/duration.ts'
import { type Infer, object, optional } from '../../schema/field.ts'
import { atLeastOneOf } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { keepalive } from '../../schema/shapes/connection.ts'
import { type Compiled, definePolicy } from '../define.ts'
import type { FrontendTcpConfig } from './apply.ts'

const frontendTcpSchema = object(
  'FrontendTCP',
  { keepalive: optional(keepalive, 'Probes on idle connections.') },
  { rules: [atLeastOneOf('keepalive')] },
)
type FrontendTcpSpec = Infer<typeof frontendTcpSchema>

const frontendTcpField = sectionField({
  section: 'frontend',
  field: 'tcp',
  schema: frontendTcpSchema,
  doc: 'TCP settings of accepted connections.',
})

const defaultRetries = 9
const defaultMs = 180_000

/** `frontend.tcp`; the schema has checked the durations. */
function compile({ keepalive = {} }: FrontendTcpSpec): Compiled<FrontendTcpConfig> {
  const milliseconds = (text: string | undefined) =>
    (text === undefined ? undefined : parseDurationMs(text)) ?? defaultMs
  const { retries = defaultRetries, time, interval } = keepalive
  const config = {
    keepalive: { retries, timeMs: milliseconds(time), intervalMs: milliseconds(interval) },
  }
  return { config, problems: [] }
}

/** Socket options, set when a connection is accepted. */
export const frontendTcp = definePolicy(frontendTcpField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
