/** Observes what one process appends to the log and reads from it. */
import type { AnyCloudEvent } from '../../events/index.ts'
import type { EventLog, Position, Recorded } from '../../src/control/log/index.ts'

interface Taps {
  onAppended(events: readonly AnyCloudEvent[], positions: readonly Position[]): void
  /** `before` is the position that the same reader read before; undefined at its first event. */
  onRead(recorded: Recorded, before: number | undefined): void
}

export function tapped(log: EventLog, { onAppended, onRead }: Taps): EventLog {
  return {
    async append(events, options) {
      const appended = await log.append(events, options)
      if (appended.ok) onAppended(events, appended.value)
      return appended
    },
    async *tail(from, options) {
      let before: number | undefined
      for await (const recorded of log.tail(from, options)) {
        onRead(recorded, before)
        before = recorded.position
        yield recorded
      }
    },
    read: (range) => log.read(range),
    lastPosition: () => log.lastPosition(),
    firstPosition: () => log.firstPosition(),
    lostUpTo: () => log.lostUpTo(),
    mend: (stateAt) => log.mend(stateAt),
    saveSnapshot: (snapshot) => log.saveSnapshot(snapshot),
    loadSnapshot: (query) => log.loadSnapshot(query),
    snapshots: () => log.snapshots(),
    purgeUpTo: (position) => log.purgeUpTo(position),
    compact: () => log.compact(),
    close: () => log.close(),
  }
}
