import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { jwtAuthenticationField } from './schema.ts'

/** Asks for a signed token. */
export const jwtAuthentication = definePolicy(jwtAuthenticationField, {
  security: true,
  preRouting: true,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
