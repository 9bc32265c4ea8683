import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { transformationField } from './schema.ts'

/** Changes heads and bodies of requests and responses by expressions. */
export const transformation = definePolicy(transformationField, {
  security: true,
  preRouting: true,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
