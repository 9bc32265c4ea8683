import { definePolicy } from '../../../policies/define.ts'
import { compile } from './compile.ts'
import { backendAiField } from './schema.ts'

/** Settings of language models. Guards live in it: without it nothing passes. */
export const backendAi = definePolicy(backendAiField, {
  security: true,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
