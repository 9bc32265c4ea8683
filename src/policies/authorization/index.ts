import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { authorizationField } from './schema.ts'

/** Allows or refuses requests by expressions; the rules of all policies that apply are joined. */
export const authorization = definePolicy(authorizationField, {
  security: true,
  preRouting: true,
  merge: 'append',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
