import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { frontendTcpField } from './schema.ts'

/** Socket options, set when a connection is accepted. */
export const frontendTcp = definePolicy(frontendTcpField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
