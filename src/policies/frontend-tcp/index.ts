import { keepaliveConfig } from '../../model/shapes.ts'
import { object, optional } from '../../schema/field.ts'
import { atLeastOneOf } from '../../schema/rules.ts'
import { keepalive } from '../../schema/shapes/connection.ts'
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
