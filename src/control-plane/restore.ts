/**
 * The state to begin with, also on a log that somebody has robbed of what is needed.
 *
 * ```
 *   reading ── whole, or a stored state stands in ──► begun
 *      │  ▲
 *      │  └── a replica that still has the state has stored it ──┐
 *      └── events are missing ──► waiting ───────────────────────┤
 *                                    └── nobody has it ──► an empty state is stored: all is listed anew
 * ```
 *
 * Whoever still has the state keeps it, so statuses and what proxies are served do not move; only
 * where nobody has it does everything begin at nothing, as on a new log.
 */
import { setTimeout as after } from 'node:timers/promises'
import { within } from '../base/within.ts'
import type { Lease, LeaseOptions } from '../lease/index.ts'
import { type EventLog, LogError } from '../log/index.ts'
import { nothingKnownAt, type RestoredState, restoreState } from './stored-state.ts'

export interface BeginOptions {
  readonly log: EventLog
  readonly source: string
  /** How long others are given to store the state that they have. */
  readonly patienceMs: number
  /** Does the work while no other replica can be at it; false where another one is. */
  readonly alone: (work: () => Promise<void>) => Promise<boolean>
  /** Why this waits; called once, and with undefined when it goes on. */
  readonly onWait: (reason: string | undefined) => void
  readonly say: (text: string) => void
  readonly signal?: AbortSignal
}

const lookMs = 500

/** @throws LogError; the signal's reason where it was aborted. */
export async function beginState(options: BeginOptions): Promise<RestoredState> {
  const { log, source, patienceMs, alone, onWait, say, signal } = options
  const began = performance.now()
  for (let isTold = false; ; isTold = true) {
    const lost = await restoreState(log, source).catch((error) => {
      if (error instanceof LogError && error.code === 'purged') return error
      throw error
    })
    if (!(lost instanceof LogError)) {
      if (isTold) onWait(undefined)
      return lost
    }
    if (!isTold) {
      onWait(lost.message)
      say(`${lost.message}; waiting for a replica that still has the state to store it`)
    }
    const isLong = performance.now() - began >= patienceMs
    const isDone =
      isLong && (await alone(() => log.mend((position) => nothingKnownAt(position, source))))
    if (isDone) say('no replica has the state: history ends here, and everything is listed again')
    else await after(lookMs, undefined, { signal })
  }
}

/** What a replica says that still has the state. */
export const robbedText = (upTo: number): string =>
  `somebody has removed events up to position ${upTo} from the log`

/**
 * Takes a lease for one piece of work, unless another replica holds it. The lease of a replica that
 * is gone is free when nobody has renewed it for `durationMs`, so this waits for twice as long.
 */
export async function whileHolding(
  open: (options: Omit<LeaseOptions, 'durationMs' | 'onProblem' | 'identity'>) => Lease,
  durationMs: number,
  work: () => Promise<void>,
): Promise<boolean> {
  const { promise: acquired, resolve } = Promise.withResolvers<void>()
  const lease = open({
    highestEpoch: () => 0,
    isFit: () => true,
    onAcquired: () => resolve(),
    onLost: () => undefined,
  })
  lease.start()
  try {
    if (!(await within(2 * durationMs, () => acquired))) return false
    await work()
    return true
  } finally {
    await lease.close()
  }
}
