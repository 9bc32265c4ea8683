import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { directResponseField } from './schema.ts'

/** Answers every request with a configured status and body, without a backend. */
export const directResponse = definePolicy(directResponseField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  answers: true,
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
