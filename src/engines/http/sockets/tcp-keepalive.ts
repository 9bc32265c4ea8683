import type { Socket } from 'node:net'
import type { KeepaliveSettings } from '../../../ground/exchange/connection.ts'

export const defaultKeepalive: KeepaliveSettings = {
  retries: 9,
  timeMs: 180_000,
  intervalMs: 180_000,
}

/** Linux refuses more (MAX_TCP_KEEPIDLE, MAX_TCP_KEEPINTVL), and would then send no probes at all. */
const longestMs = 32_767_000

const probeDelay = (ms: number): number => Math.min(Math.max(1_000, ms), longestMs)

/**
 * Enables probes to a silent peer once the socket is connected. Node rounds down to seconds; older
 * versions only support the time before the first probe.
 */
export function setKeepalive(
  socket: Socket,
  { retries, timeMs, intervalMs }: KeepaliveSettings,
): void {
  const options = {
    enable: true,
    initialDelay: probeDelay(timeMs),
    interval: probeDelay(intervalMs),
    count: retries,
  }
  // Node's types have only the older signature.
  const setKeepAlive = socket.setKeepAlive as (options: object) => Socket
  setKeepAlive.call(socket, options)
}
