import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { csrfField } from './schema.ts'

/** Refuses cross-site requests that change something. */
export const csrf = definePolicy(csrfField, {
  security: true,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
