import { definePolicy } from '../../../policies/define.ts'
import { compile } from './compile.ts'
import { backendMcpField } from './schema.ts'

/** Who may use an MCP backend, and what of it. Without it nothing passes. */
export const backendMcp = definePolicy(backendMcpField, {
  security: true,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
