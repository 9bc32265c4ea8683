import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { timeoutsField } from './schema.ts'

/** Limits the time from the first attempt until the whole response is received. */
export const timeouts = definePolicy(timeoutsField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  effectiveOn: ['HTTPRoute'],
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
