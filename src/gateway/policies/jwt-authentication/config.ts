import { choice, flag, type Infer, list, optional, record } from '../../../ground/base/shape.ts'
import { locationShape } from '../../tokens/location.ts'
import { issuerShape } from '../../tokens/token-issuer.ts'

/** The compiled form that proxies receive. Keys are public. */
export const shape = record({
  mode: choice('Strict', 'Optional', 'Permissive'),
  providers: list(issuerShape),
  /** If omitted, the Authorization header. */
  location: optional(locationShape),
  dpop: optional(record({ required: flag, nonces: flag })),
})
export type JwtConfig = Infer<typeof shape>
