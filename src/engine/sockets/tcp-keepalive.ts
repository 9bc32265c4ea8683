import type { Socket } from 'node:net'
import type { KeepaliveSettings } from '../../exchange/connection.ts'

export const defaultKeepalive: KeepaliveSettings = {
  retries: 9,
  timeMs: 180_000,
  intervalMs: 180_000,
}

/** Linux refuses more (MAX_TCP_KEEPIDLE, MAX_TCP_KEEPINTVL), and there would be no probes at all. */
const longestMs = 32_767_000

const probeDelay = (ms: number): number => Math.min(Math.max(1_000, ms), longestMs)

/**
 * Probes a silent peer; on a socket that is not connected yet, from then on. Node rounds down to
 * seconds, at least one; older versions know only the time before the first probe.
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
  // The types of Node know only the older form.
  const setKeepAlive = socket.setKeepAlive as (options: object) => Socket
  setKeepAlive.call(socket, options)
}
