/**
 * A lock that the threads of a process take before they write to a file descriptor that they share. A write may
 * be cut, for example by a socket whose reader is slow, and another thread must not write into the gap.
 */

const owner = 0
const wanted = 1

/** Shared memory of the lock: the number of the thread that has it plus 1, and whether another one waits. */
export type OutputLockCells = Int32Array<SharedArrayBuffer>

export function createOutputLock(): OutputLockCells {
  return new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT))
}

/** Releases the lock of a thread that has died. */
export function forgetOutput(cells: OutputLockCells, thread: number): void {
  if (Atomics.compareExchange(cells, owner, thread + 1, 0) === thread + 1) {
    Atomics.notify(cells, owner)
  }
}

export class OutputLock {
  readonly #cells: OutputLockCells
  readonly #thread: number

  /** @param thread number of this thread, from 0 */
  constructor(cells: OutputLockCells, thread: number) {
    this.#cells = cells
    this.#thread = thread
  }

  /** Takes the lock. Returns false if another thread has it. */
  tryAcquire(): boolean {
    if (Atomics.compareExchange(this.#cells, owner, 0, this.#thread + 1) === 0) return true
    Atomics.store(this.#cells, wanted, 1)
    return false
  }

  /** Takes the lock, and blocks the thread until it is free. Returns false after `limitMs`. */
  acquireSync(limitMs: number): boolean {
    const deadline = performance.now() + limitMs
    while (!this.tryAcquire()) {
      const holder = Atomics.load(this.#cells, owner)
      const restMs = deadline - performance.now()
      if (restMs <= 0) return false
      if (holder !== 0) Atomics.wait(this.#cells, owner, holder, restMs)
    }
    return true
  }

  /** Returns true if another thread waits, which should get the lock before this one takes it again. */
  release(): boolean {
    const isWanted = Atomics.exchange(this.#cells, wanted, 0) === 1
    forgetOutput(this.#cells, this.#thread)
    return isWanted
  }
}
