/**
 * Restores the state to start with, even if events that are needed were removed from the log externally.
 *
 * ```
 *   reading ── complete, or a stored state covers the missing events ──► restored
 *      │  ▲
 *      │  └── a replica that still has the state has stored it ──┐
 *      └── events are missing ──► waiting ───────────────────────┤
 *                                    └── no replica has it ──► store an empty state, list everything
 * ```
 *
 * While any replica has the state, statuses and configuration do not change. If none has it, everything
 * is observed again, as on a new log.
 */
import { setTimeout as after } from 'node:timers/promises'
import { within } from '../../ground/base/within.ts'
import type { Lease } from '../lease/lease.ts'
import { LogError } from '../log/index.ts'
import type { ControlPlaneOptions, OpenLease } from './parts.ts'
import { emptySnapshot, type RestoredState, restoreState } from './stored-state.ts'

const retryMs = 500

type LeaseRequest = Omit<Parameters<OpenLease>[0], 'identity'>

/**
 * Restores the state. If events are missing, gives other replicas of a shared log two lease durations to
 * store the state that they have.
 * @throws LogError; the signal's reason if it is aborted
 */
export async function restoreOrReset(
  options: Omit<ControlPlaneOptions, 'parts'>,
  identity: string,
): Promise<RestoredState> {
  const { log: opened, sourceName, leaseDurationMs, onWait, notify, signal } = options
  const { lease: openLease } = options
  const { log } = opened
  const patienceMs = opened.shared === undefined ? 0 : 2 * leaseDurationMs
  const began = performance.now()
  const reported = new Set<string>()
  const onDamage = (message: string) => {
    if (!reported.has(message)) notify('warn', `${message} and is not used`)
    reported.add(message)
  }
  for (let isWaiting = false; ; isWaiting = true) {
    const restored = await restoreState(log, sourceName, onDamage).catch((error) => {
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
    const open = openLease && ((lease: LeaseRequest) => openLease({ ...lease, identity }))
    if (isLong && (await whileHolding(open, leaseDurationMs, reset))) {
      notify('warn', 'no replica has the state: history ends here, and everything is listed again')
    } else await after(retryMs, undefined, { signal })
  }
}

/**
 * Runs `work` while it holds a lease; without `open`, runs it immediately. Returns false if another replica
 * holds the lease. The lease of a dead replica is free after `durationMs`, so this waits for twice as long.
 */
export async function whileHolding(
  open: ((options: LeaseRequest) => Lease) | undefined,
  durationMs: number,
  work: () => Promise<void>,
): Promise<boolean> {
  if (open === undefined) {
    await work()
    return true
  }
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
