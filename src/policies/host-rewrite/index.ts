import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { hostRewriteField } from './schema.ts'

/** Decides whether the upstream sees the client's Host or the destination's. */
export const hostRewrite = definePolicy(hostRewriteField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
