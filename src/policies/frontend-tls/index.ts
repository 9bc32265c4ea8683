import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { frontendTlsField } from './schema.ts'

/** What handshakes with clients may agree on, and how long they may take. */
export const frontendTls = definePolicy(frontendTlsField, {
  security: true,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
