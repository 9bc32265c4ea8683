import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { frontendHttpField } from './schema.ts'

/** Limits of heads, buffered bodies and silence; windows, frames and pings of HTTP/2. */
export const frontendHttp = definePolicy(frontendHttpField, {
  security: true,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
