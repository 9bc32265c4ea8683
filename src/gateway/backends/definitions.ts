/** Kinds of backends that are fields of GatewayBackend, in the order of the reference pages. */
import { a2aBackend } from './a2a/definition/index.ts'
import { aiBackend } from './ai/definition/index.ts'
import { dynamicBackend } from './dynamic/definition.ts'
import { mcpBackend } from './mcp/definition/index.ts'
import { staticBackend } from './static/definition.ts'

export const backendDefinitions = [
  staticBackend,
  aiBackend,
  mcpBackend,
  dynamicBackend,
  a2aBackend,
] as const
