import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { headerModifiersField } from './schema.ts'

/** Sets, adds and removes header fields of requests and responses. */
export const headerModifiers = definePolicy(headerModifiersField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
