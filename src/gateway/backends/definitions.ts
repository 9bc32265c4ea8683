/** Kinds of backends that are fields of GatewayBackend, in the order of the reference pages. */
import { aiBackend } from './ai/definition/index.ts'
import { dynamicBackend } from './dynamic/definition.ts'
import { mcpBackend } from './mcp/definition/index.ts'
import { staticBackend } from './static/definition.ts'

export const backendDefinitions = [staticBackend, aiBackend, mcpBackend, dynamicBackend] as const
