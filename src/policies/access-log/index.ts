import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { accessLogField } from './schema.ts'

/** Decides which lines the access log has, and what stands in them. */
export const accessLog = definePolicy(accessLogField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
