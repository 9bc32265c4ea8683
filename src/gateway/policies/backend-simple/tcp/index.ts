import { parseDurationMs } from '../../../../ground/base/duration.ts'
import { keepaliveConfig } from '../../../../ground/model/shapes.ts'
import { type Infer, object, optional } from '../../../../ground/schema/field.ts'
import { keepalive } from '../../../../ground/schema/shapes/connection.ts'
import { duration } from '../../../../ground/schema/strings.ts'
import { definePolicy } from '../../define.ts'

const schema = object('BackendTCP', {
  keepalive: optional(keepalive, 'Probes on idle connections.'),
  connectTimeout: optional(duration, 'Timeout of a connection attempt.'),
})

export function compile({ keepalive, connectTimeout }: Infer<typeof schema>) {
  const config = {
    keepalive: keepalive && keepaliveConfig(keepalive),
    connectTimeoutMs: parseDurationMs(connectTimeout),
  }
  return { config, problems: [] }
}

/** Sets TCP keepalive and the connect timeout of connections to the backend. */
export const backendTcp = definePolicy({
  section: 'backend',
  field: 'tcp',
  schema,
  doc: 'TCP settings of connections to the backend.',
  security: false,
  compile,
  apply: () => import('./apply.ts'),
})
