/**
 * Gives memory back to the system when a thread has taken configuration in and then has had nothing
 * to do for a while. What was taken in leaves as much garbage as it is large, and where nothing is
 * allocated any more V8 takes its time to collect it, or never does.
 *
 * ```
 *   configuration ──► busy ── quiet for 10 s, and much to gain ──► trimmed until the next one
 * ```
 *
 * A collection stops its thread, so one is made only where nothing at all happens: a request that
 * comes just then waits for it (some 50 ms with a heap of 50 MB). What requests have left behind is
 * kept: the next ones need it again, and the compiled code that such a collection throws away.
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

/**
 * Threads that start from now on keep the room for young objects that load has given them. V8 would
 * take it back after some quiet seconds, and the first tenths of a second of the next requests
 * would cost three times as much.
 */
export function keepYoungRoom(): void {
  setFlagsFromString('--no-memory-reducer')
}

/** What a thread has in memory, beside what lives there. */
function heldBytes(): number {
  const { total_physical_size: heap, external_memory: external } = getHeapStatistics()
  return heap + external
}

interface Activity {
  /** Changes with the configuration that has come. */
  taken(): number
  /** Changes with whatever else happens. */
  carried?(): number
}

/** Trims this thread's heap once after each time of changes. Ends with the thread; holds nothing up. */
export function trimWhenIdle({ taken, carried = () => 0 }: Activity): void {
  let last = taken() + carried()
  let looks = 0
  let trimmedAt = 0
  let leftBytes = 0
  let collect: Collect | undefined
  const look = (): void => {
    const configuration = taken()
    const now = configuration + carried()
    looks = now === last ? looks + 1 : 0
    last = now
    if (looks !== quietLooks || configuration === trimmedAt) return
    if (heldBytes() - leftBytes < worthBytes) return
    collect ??= findCollector()
    collect?.({ type: 'major', flavor: 'last-resort' })
    trimmedAt = configuration
    leftBytes = heldBytes()
  }
  setInterval(look, lookEveryMs).unref()
}
