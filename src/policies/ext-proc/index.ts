import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { extProcField } from './schema.ts'

/** Has requests and responses processed elsewhere. */
export const extProc = definePolicy(extProcField, {
  security: true,
  preRouting: true,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
