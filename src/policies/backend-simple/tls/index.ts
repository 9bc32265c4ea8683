import { definePolicy } from '../../define.ts'
import { compile } from './compile.ts'
import { backendTlsField } from './schema.ts'

/** Speaks TLS to the backend. What cannot be verified as asked is not reached. */
export const backendTls = definePolicy(backendTlsField, {
  security: true,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
