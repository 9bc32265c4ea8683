import type { ClientSettings, KeepaliveSettings } from '../../../ground/exchange/connection.ts'
import { defaultHttp2Limits, type EngineLimits } from './engine-limits.ts'

/** Settings of a port that can change while it is bound. */
export interface PortChange extends Pick<ClientSettings, 'proxyProtocol' | 'refusal'> {
  /** Limits to set; omitted ones get their defaults. */
  readonly limits: Partial<EngineLimits>
  readonly keepalive?: KeepaliveSettings
}

/** Default limits of a head: number of fields, and bytes. */
const defaultFields = 100
const defaultHeadBytes = 16 * 1024
/** Maximum number of bytes of a head, which is read at once. */
const headBytesLimit = 64 * 1024 - 1

/** Converts the settings of client connections, which come from policies, to the change of a port. */
export function portChangeOf(settings: ClientSettings): PortChange {
  const { keepalive, tls, http, proxyProtocol, refusal } = settings
  const limits: Partial<EngineLimits> = {
    ...(http?.maxHeaders !== undefined && headLimits(http.maxHeaders)),
    ...(http?.idleTimeoutMs !== undefined && { idleTimeoutMs: http.idleTimeoutMs }),
    ...(http?.connectionDurationMs !== undefined && {
      connectionDurationMs: http.connectionDurationMs,
    }),
    ...(http?.http2 !== undefined && { http2: { ...defaultHttp2Limits, ...http.http2 } }),
    ...(tls?.handshakeTimeoutMs !== undefined && { handshakeTimeoutMs: tls.handshakeTimeoutMs }),
  }
  return { limits, ...(keepalive && { keepalive }), proxyProtocol, refusal }
}

/** Returns the limits for a number of fields. The maximum number of bytes grows with it. */
function headLimits(maxHeaders: number): Partial<EngineLimits> {
  const wanted = Math.ceil(maxHeaders / defaultFields) * defaultHeadBytes
  return { maxHeaders, maxHeadBytes: Math.min(wanted, headBytesLimit) }
}
