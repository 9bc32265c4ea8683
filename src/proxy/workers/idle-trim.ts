/**
 * Gives memory back to the system when a thread has had nothing to do for a while. V8 keeps what its
 * heap has grown to, and what was taken in with configuration leaves as much garbage as it is large;
 * where nothing is allocated any more nothing would ever collect it.
 *
 * ```
 *   busy ── quiet for 10 s, and much to gain ──► trimmed ── anything happens ──► busy
 * ```
 *
 * A collection stops its thread, so one is made only where nothing at all happens: a request that
 * comes just then waits for it (some 50 ms with a heap of 50 MB).
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const lookEveryMs = 5_000
/** Looks in a row at which nothing had happened since the one before. */
const quietLooks = 2
/** What a collection must promise to give back. */
const worthBytes = 8 * 1024 * 1024

type Collect = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void

/** The collector that V8 has for tests of memory, which is the one way to ask for it. */
function findCollector(): Collect | undefined {
  setFlagsFromString('--expose-gc')
  const found: unknown = runInNewContext('globalThis.gc')
  return typeof found === 'function' ? (found as Collect) : undefined
}

/** What a thread has in memory, beside what lives there. */
function heldBytes(): number {
  const { total_physical_size: heap, external_memory: external } = getHeapStatistics()
  return heap + external
}

/**
 * Trims this thread's heap whenever it is quiet. `activity`: a number that changes with whatever
 * happens. Ends with the thread; holds nothing up.
 */
export function trimWhenIdle(activity: () => number): void {
  let last = activity()
  let looks = 0
  let leftBytes = 0
  let collect: Collect | undefined
  const look = (): void => {
    const now = activity()
    looks = now === last ? looks + 1 : 0
    last = now
    if (looks !== quietLooks || heldBytes() - leftBytes < worthBytes) return
    collect ??= findCollector()
    collect?.({ type: 'major', flavor: 'last-resort' })
    leftBytes = heldBytes()
  }
  setInterval(look, lookEveryMs).unref()
}
