import { type Infer, object, optional } from '../../schema/field.ts'
import { atLeastOneOf } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { keepalive } from '../../schema/shapes/connection.ts'

const frontendTcp = object(
  'FrontendTCP',
  { keepalive: optional(keepalive, 'Probes on idle connections.') },
  { rules: [atLeastOneOf('keepalive')] },
)
export type FrontendTcpSpec = Infer<typeof frontendTcp>

export const frontendTcpField = sectionField({
  section: 'frontend',
  field: 'tcp',
  schema: frontendTcp,
  doc: 'TCP settings of accepted connections.',
})
