import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'

/** Decides whether the upstream sees the client's Host or the destination's. */
export const hostRewrite = definePolicy({
  section: 'traffic',
  field: 'hostRewrite',
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
