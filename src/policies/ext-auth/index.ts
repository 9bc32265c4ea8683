import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { extAuthField } from './schema.ts'

/** Asks an authorization service whether a request may pass. */
export const extAuth = definePolicy(extAuthField, {
  security: true,
  preRouting: true,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
