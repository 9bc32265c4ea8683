/**
 * One measurement of `fold.ts`, in a process of its own: folds a mixed log as `sluice status --at` does, and
 * restores the state at its end. Started with the numbers of events and routes; sends its figures to the parent.
 */
import type { RecordedEvent } from '../src/control/actors/fold.ts'
import { createFold, type Fold } from '../src/past/replay/index.ts'
import { mixedLog } from './mixed-log.ts'

export interface MixedFigures {
  /** Microseconds an event, folding and deriving. */
  readonly mixed: number
  /** Milliseconds to restore the state. */
  readonly restore: number
}

const options = { checkRegex: () => undefined }
const chunkSize = 500

/** User and system time of this process so far, in microseconds; other processes do not disturb it. */
function cpuTime(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Returns the microseconds for folding the events, without parsing them. */
function foldLines(fold: Fold, lines: readonly string[]): number {
  let spent = 0
  for (let from = 0; from < lines.length; from += chunkSize) {
    const events = lines.slice(from, from + chunkSize).map((line) => JSON.parse(line))
    const begun = cpuTime()
    for (const recorded of events as readonly RecordedEvent[]) {
      fold.apply(recorded)
      if (recorded.event.type === 'dev.sluice.desired.published.v1') fold.dropChange()
    }
    spent += cpuTime() - begun
  }
  return spent
}

function measure(size: number, routes: number): MixedFigures {
  // Through JSON, as from a log: nothing is shared between objects.
  const lines = Array.from(mixedLog(size, routes), (recorded) => JSON.stringify(recorded))
  const fold = createFold(options)
  // The code becomes hot while the first half creates and edits the routes.
  const half = Math.floor(lines.length / 2)
  foldLines(fold, lines.slice(0, half))
  const mixed = foldLines(fold, lines.slice(half)) / (lines.length - half)
  const state = JSON.parse(JSON.stringify(fold.snapshot()))
  const begun = cpuTime()
  createFold(options, state)
  return { mixed, restore: (cpuTime() - begun) / 1_000 }
}

const [size, routes] = process.argv.slice(2).map(Number)
process.send?.(measure(size ?? 0, routes ?? 0), () => process.disconnect())
