import { definePolicy } from '../../define.ts'
import { compile } from './compile.ts'
import { backendAuthField } from './schema.ts'

/** Credentials that requests to the backend carry. Without them it is not called. */
export const backendAuth = definePolicy(backendAuthField, {
  security: true,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
