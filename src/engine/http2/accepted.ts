import type { EngineLimits } from '../limits/engine-limits.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'

/** A connection that turned out to speak HTTP/2. */
export interface Http2Accepted {
  readonly limits: EngineLimits
  readonly port: number
  readonly tls: TlsChoice | undefined
}
