import { idleTimeoutMs } from '../limits/engine-limits.ts'

/** How much earlier than the server a connection is closed: a request may be on its way when the server closes. */
const marginMs = 1_000

/** By how many milliseconds, and by which part, idle times after which the same server closes may differ. */
const toleranceMs = 250
const tolerance = 0.1
/** Closes in a shorter time, as when a server stops, count once. */
const sameEventMs = 1_000
/** Shorter idle times are not learned, because they are rarely a limit of the server. */
const shortestMs = 500

const timeout = /(?:^|[,;\s])timeout\s*=\s*"?(\d{1,9})(?!\d)/i

/**
 * Returns how many milliseconds a connection may stay idle, by the Keep-Alive field of the server, which states
 * seconds; 0 if it must not be reused. Short timeouts are halved.
 */
export function idleLimit(keepAlive: string | undefined): number {
  const stated = keepAlive === undefined ? undefined : timeout.exec(keepAlive)?.[1]
  if (stated === undefined) return idleTimeoutMs
  return withMargin(Number(stated) * 1_000)
}

function withMargin(ms: number): number {
  return Math.min(ms - Math.min(marginMs, ms / 2), idleTimeoutMs)
}

/**
 * Learns after which idle time a server closes connections, for servers that do not state it. Two closes
 * after about the same idle time are its limit; a single one may have other reasons, such as a restart.
 */
export class IdleLimit {
  /** How many milliseconds a connection to the server may stay idle. */
  ms = idleTimeoutMs
  #lastMs = 0
  #lastAt = Number.NEGATIVE_INFINITY

  /** Called at time `now` when the server has closed a connection that was idle since `since`. */
  onClosed(since: number, now: number): void {
    const idleMs = now - since
    if (idleMs < shortestMs || now - this.#lastAt < sameEventMs) return
    const difference = Math.abs(idleMs - this.#lastMs)
    if (difference <= Math.max(toleranceMs, idleMs * tolerance)) {
      this.ms = Math.min(this.ms, withMargin(Math.min(idleMs, this.#lastMs)))
    }
    this.#lastMs = idleMs
    this.#lastAt = now
  }
}
