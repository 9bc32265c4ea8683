import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { corsField } from './schema.ts'

/** Answers preflight requests, and tells browsers which origins may read responses. */
export const cors = definePolicy(corsField, {
  security: false,
  preRouting: true,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
