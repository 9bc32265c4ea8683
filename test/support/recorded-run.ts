/** Logs as a running control plane writes them, with its decisions and snapshots. */
import type { SluiceEvent } from '../../events/index.ts'
import { type EventLog, MemoryLog } from '../../src/control/log/index.ts'
import { Reconciler } from '../../src/control/plane/reconciler.ts'
import { captureState, restoreState } from '../../src/control/plane/stored-state.ts'

/** Starts the loop of a control plane on the log. */
async function startReconciler(log: EventLog): Promise<Reconciler> {
  const { fold, index, from } = await restoreState(log, '/sluice/files')
  const reconciler = new Reconciler({
    log,
    fold,
    epoch: () => 0,
    append: (events: readonly SluiceEvent[]) => log.append(events),
    observe: (event) => index.apply(event),
    publish: () => undefined,
    capture: () => captureState(fold, index),
    snapshotEvery: 12,
    onFault: (error: unknown) => {
      throw error
    },
  })
  await reconciler.start(from)
  reconciler.open()
  return reconciler
}

/** Appends the events in batches, and restarts the control plane once. */
export async function record(
  events: readonly SluiceEvent[],
  sizes: readonly number[],
): Promise<EventLog> {
  const log = new MemoryLog()
  let reconciler = await startReconciler(log)
  for (let at = 0, batch = 0; at < events.length; batch++) {
    const size = sizes[batch % sizes.length] ?? 1
    await log.append(events.slice(at, at + size))
    at += size
    await reconciler.folded(await log.lastPosition())
    if (batch !== 3) continue
    await reconciler.stop()
    reconciler = await startReconciler(log)
  }
  await reconciler.stop()
  return log
}
