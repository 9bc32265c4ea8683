import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { retryField } from './schema.ts'

/** Sends a request again whose attempt has failed, as long as nothing of its response was sent. */
export const retry = definePolicy(retryField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
