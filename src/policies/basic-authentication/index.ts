import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { basicAuthenticationField } from './schema.ts'

/** Asks for user name and password. */
export const basicAuthentication = definePolicy(basicAuthenticationField, {
  security: true,
  preRouting: true,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
