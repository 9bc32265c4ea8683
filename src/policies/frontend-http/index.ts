import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { frontendHttpField } from './schema.ts'

/**
 * Limits of heads, buffered bodies and silence; windows, frames and pings of HTTP/2. Where they cannot
 * be read, the defaults bound the same things.
 */
export const frontendHttp = definePolicy(frontendHttpField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
