import { type Infer, object, optional } from '../../../schema/field.ts'
import { sectionField } from '../../../schema/section-field.ts'
import { keepalive } from '../../../schema/shapes/connection.ts'
import { duration } from '../../../schema/strings.ts'

export const backendTcp = object('BackendTCP', {
  keepalive: optional(keepalive, 'Probes on idle connections.'),
  connectTimeout: optional(duration, 'Time in which a connection must be made.'),
})
export type BackendTcpSpec = Infer<typeof backendTcp>

export const backendTcpField = sectionField({
  section: 'backend',
  field: 'tcp',
  schema: backendTcp,
  doc: 'TCP settings of connections to the backend.',
})
