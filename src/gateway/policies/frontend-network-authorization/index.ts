import { authorization as schema } from '../../../ground/schema/shapes/authentication.ts'
import { compile } from '../authorization/index.ts'
import { definePolicy } from '../define.ts'

/** Allows or refuses connections by the addresses of their ends. The rules of all policies that apply are combined. */
export const frontendNetworkAuthorization = definePolicy({
  section: 'frontend',
  field: 'networkAuthorization',
  schema,
  doc: 'Allows or refuses connections by expressions about their addresses (`source`, `destination`), before TLS and HTTP. The rules of all policies that apply are combined.',
  security: true,
  merge: 'append',
  expressions: [{ path: '', point: 'connection' }],
  compile,
  apply: () => import('./apply.ts'),
})
