/**
 * Returns memory to the system when a thread has applied configuration and is then idle for a while. A large
 * configuration leaves as much garbage, and V8 may never collect it if nothing more is allocated.
 *
 * ```
 *   configuration ──► busy ── idle for 10 s, and much garbage ──► trimmed, until the next configuration
 * ```
 *
 * A collection blocks its thread (about 50 ms for a heap of 50 MB), so the thread must be idle. Garbage of
 * requests alone is not collected: the next requests need the memory again, and the collection would also
 * discard compiled code.
 */
import { flushCompileCache } from 'node:module'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const checkEveryMs = 5_000
/** Number of consecutive checks without activity after which the thread is idle. */
const idleChecks = 2
/** Minimum growth of memory since the last collection for which a collection is worth its cost. */
const minGainBytes = 8 * 1024 * 1024

type Collect = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void

/** Returns V8's garbage collector function, which a flag makes available. */
function findCollector(): Collect | undefined {
  setFlagsFromString('--expose-gc')
  const found: unknown = runInNewContext('globalThis.gc')
  return typeof found === 'function' ? (found as Collect) : undefined
}

/**
 * Sets how V8 collects garbage in threads that are created later. Idle threads keep the size of their young
 * generation, so that requests stay fast. Collections of the young generation do not wait for helper threads,
 * which lengthen the pauses on busy processors (ADR 21).
 */
export function tuneCollections(): void {
  setFlagsFromString('--no-memory-reducer')
  setFlagsFromString('--no-parallel-scavenge')
  setFlagsFromString('--no-concurrent-array-buffer-sweeping')
}

/** Returns the memory of the thread, including garbage. */
function heldBytes(): number {
  const { total_physical_size: heap, external_memory: external } = getHeapStatistics()
  return heap + external
}

interface Activity {
  /** Returns a number that changes with each configuration that is applied. */
  taken(): number
  /** Returns a number that changes with all other activity. */
  carried?(): number
}

/**
 * Trims this thread's heap once after each configuration. Does not keep the thread alive. Returns a function
 * that ends it.
 */
export function trimWhenIdle({ taken, carried = () => 0 }: Activity): () => void {
  let last = taken() + carried()
  let quietChecks = 0
  let trimmedAt = 0
  let leftBytes = 0
  let collect: Collect | undefined
  const check = (): void => {
    const configuration = taken()
    const now = configuration + carried()
    quietChecks = now === last ? quietChecks + 1 : 0
    last = now
    if (quietChecks !== idleChecks || configuration === trimmedAt) return
    if (heldBytes() - leftBytes < minGainBytes) return
    // Node keeps the compiled code of all modules for its cache on disk (2 MB) until the cache is written.
    flushCompileCache()
    collect ??= findCollector()
    collect?.({ type: 'major', flavor: 'last-resort' })
    trimmedAt = configuration
    leftBytes = heldBytes()
  }
  const timer = setInterval(check, checkEveryMs).unref()
  return () => clearInterval(timer)
}
