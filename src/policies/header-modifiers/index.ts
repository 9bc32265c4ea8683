import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'

/** Sets, adds and removes header fields of requests and responses. */
export const headerModifiers = definePolicy({
  section: 'traffic',
  field: 'headerModifiers',
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
