import { choice, flag, type Infer, list, optional, record } from '../../../ground/base/shape.ts'
import { signInShape } from '../../backends/mcp/auth/config.ts'
import { locationShape } from '../../tokens/location.ts'
import { issuerShape } from '../../tokens/token-issuer.ts'

/** The compiled form that proxies receive. Keys are public. */
export const shape = record({
  mode: choice('Strict', 'Optional', 'Permissive'),
  providers: list(issuerShape),
  /** If omitted, the Authorization header. */
  location: optional(locationShape),
  dpop: optional(record({ required: flag, nonces: flag })),
  /** Set if the route is an MCP server whose clients sign in. */
  mcp: optional(signInShape),
})
export type JwtConfig = Infer<typeof shape>
