import { definePolicy } from '../../define.ts'
import { compile } from './compile.ts'
import { backendHttpField } from './schema.ts'

/** Which HTTP is spoken to the backend, and how long one attempt may take. */
export const backendHttp = definePolicy(backendHttpField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
