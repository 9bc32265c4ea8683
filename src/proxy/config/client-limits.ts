import type { PortChange } from '../../engine/contracts/engine.ts'
import type { EngineLimits } from '../../engine/limits/engine-limits.ts'
import { defaultHttp2Limits } from '../../engine/limits/http2-limits.ts'
import type { ClientSettings } from '../../exchange/connection.ts'

/** Fields and bytes of a head, where the user does not say. */
const usualFields = 100
const usualHeadBytes = 16 * 1024
/** What one read of a head can take. */
const mostHeadBytes = 64 * 1024 - 1

/** What frontend policies mean for the engine. */
export function portChangeOf({ keepalive, tls, http }: ClientSettings): PortChange {
  const limits: Partial<EngineLimits> = {
    ...(http?.maxHeaders !== undefined && headLimits(http.maxHeaders)),
    ...(http?.idleTimeoutMs !== undefined && { idleTimeoutMs: http.idleTimeoutMs }),
    ...(http?.http2 !== undefined && { http2: { ...defaultHttp2Limits, ...http.http2 } }),
    ...(tls?.handshakeTimeoutMs !== undefined && { handshakeTimeoutMs: tls.handshakeTimeoutMs }),
  }
  return { limits, ...(keepalive && { keepalive }) }
}

/** More fields need more room. */
function headLimits(maxHeaders: number): Partial<EngineLimits> {
  const wanted = Math.ceil(maxHeaders / usualFields) * usualHeadBytes
  return { maxHeaders, maxHeadBytes: Math.min(wanted, mostHeadBytes) }
}
