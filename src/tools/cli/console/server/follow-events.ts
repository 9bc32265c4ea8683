import { setTimeout as after } from 'node:timers/promises'
import {
  beginning,
  type EventLog,
  type Position,
  type Recorded,
} from '../../../../control/log/index.ts'

const pollMs = 500

/**
 * Yields the events from a position on, including those that another process appends: its log does not notify
 * this one, so that the last position is polled. Ends when the signal is aborted.
 */
export async function* followEvents(
  log: EventLog,
  from: Position,
  signal: AbortSignal,
): AsyncGenerator<Recorded> {
  let next: number = Math.max(from, beginning + 1)
  while (!signal.aborted) {
    if ((await log.lastPosition()) < next) {
      await after(pollMs, undefined, { signal }).catch(() => undefined)
      continue
    }
    for await (const recorded of log.read({ from: next as Position })) {
      if (signal.aborted) return
      yield recorded
      next = recorded.position + 1
    }
  }
}
