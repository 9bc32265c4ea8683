/**
 * The state to start with, even if somebody else has removed events from the log that are needed.
 *
 * ```
 *   reading ── whole, or a stored state covers what is missing ──► restored
 *      │  ▲
 *      │  └── a replica that still has the state has stored it ──┐
 *      └── events are missing ──► waiting ───────────────────────┤
 *                                    └── no replica has it ──► an empty state is stored: all is listed again
 * ```
 *
 * While any replica has the state, statuses and what proxies are served do not move. Only if none
 * has, everything is observed again, as on a new log.
 */
import { setTimeout as after } from 'node:timers/promises'
import { within } from '../base/within.ts'
import type { Lease, LeaseOptions } from '../lease/index.ts'
import { LogError } from '../log/index.ts'
import type { ControlPlaneOptions } from './parts.ts'
import { emptySnapshot, type RestoredState, restoreState } from './stored-state.ts'

const lookMs = 500

/**
 * Other replicas of a shared log get two durations of the lease to store the state that they have.
 * @throws LogError; the signal's reason if it was aborted.
 */
export async function restoreOrReset(
  options: Omit<ControlPlaneOptions, 'parts'>,
  identity: string,
): Promise<RestoredState> {
  const { log: opened, sourceName, leaseDurationMs, onWait, notify, signal } = options
  const { log } = opened
  const patienceMs = opened.shared === undefined ? 0 : 2 * leaseDurationMs
  const began = performance.now()
  for (let isWaiting = false; ; isWaiting = true) {
    const restored = await restoreState(log, sourceName).catch((error) => {
      if (error instanceof LogError && error.code === 'purged') return error
      throw error
    })
    if (!(restored instanceof LogError)) {
      if (isWaiting) onWait?.(undefined)
      return restored
    }
    const { message } = restored
    if (!isWaiting) {
      onWait?.(message)
      notify('warn', `${message}; waiting for a replica that still has the state to store it`)
    }
    const isLong = performance.now() - began >= patienceMs
    const reset = () => log.mend((position) => emptySnapshot(position, sourceName))
    if (isLong && (await exclusively(options, identity, reset))) {
      notify('warn', 'no replica has the state: history ends here, and everything is listed again')
    } else await after(lookMs, undefined, { signal })
  }
}

/** Does the work while no other replica can. Resolves to false if another one might. */
async function exclusively(
  { lease: openLease, leaseDurationMs }: Omit<ControlPlaneOptions, 'parts'>,
  identity: string,
  work: () => Promise<void>,
): Promise<boolean> {
  if (openLease !== undefined) {
    return whileHolding((lease) => openLease({ ...lease, identity }), leaseDurationMs, work)
  }
  await work()
  return true
}

/**
 * Takes a lease for one piece of work, unless another replica holds it. The lease of a replica that
 * is gone is free once it was not renewed for `durationMs`, so this waits for twice as long.
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
