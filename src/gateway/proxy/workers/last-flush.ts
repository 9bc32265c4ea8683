import type { WorkerThread } from './worker-thread.ts'

/** Maximum time that the end of the process waits for the flush of the access log. */
const lastFlushMs = 500

/** Waits synchronously until the threads have flushed the access log, because they end with the process. */
export function flushLogs(threads: readonly WorkerThread[]): void {
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const alive = threads.filter(({ isAlive }) => isAlive)
  for (const thread of alive) thread.send({ type: 'flush', gate })
  const deadline = performance.now() + lastFlushMs
  for (let done = 0; done < alive.length; done = Atomics.load(gate, 0)) {
    if (Atomics.wait(gate, 0, done, deadline - performance.now()) === 'timed-out') return
  }
}
