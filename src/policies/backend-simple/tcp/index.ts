import { definePolicy } from '../../define.ts'
import { compile } from './compile.ts'
import { backendTcpField } from './schema.ts'

/** Socket options of connections to the backend, and how long one may take to be made. */
export const backendTcp = definePolicy(backendTcpField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
