import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { apiKeyAuthenticationField } from './schema.ts'

/** Asks for an API key. */
export const apiKeyAuthentication = definePolicy(apiKeyAuthenticationField, {
  security: true,
  preRouting: true,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
