import { keepaliveConfig } from '../../../ground/model/shapes.ts'
import { object, optional } from '../../../ground/schema/field.ts'
import { atLeastOneOf } from '../../../ground/schema/rules.ts'
import { keepalive } from '../../../ground/schema/shapes/connection.ts'
import { definePolicy } from '../define.ts'

/** Sets socket options of accepted connections. */
export const frontendTcp = definePolicy({
  section: 'frontend',
  field: 'tcp',
  schema: object(
    'FrontendTCP',
    { keepalive: optional(keepalive, 'Probes on idle connections.') },
    { rules: [atLeastOneOf('keepalive')] },
  ),
  doc: 'TCP settings of accepted connections.',
  security: false,
  compile: ({ keepalive = {} }) => ({
    config: { keepalive: keepaliveConfig(keepalive) },
    problems: [],
  }),
  apply: () => import('./apply.ts'),
})
