import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { rateLimitField } from './schema.ts'

/** Limits requests and LLM tokens. */
export const rateLimit = definePolicy(rateLimitField, {
  security: true,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
