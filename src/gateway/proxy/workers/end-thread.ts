import type { Worker } from 'node:worker_threads'

const endMs = 5_000

/**
 * Ends a thread. Node waits until all handles of a thread are closed. If that takes more than `maxMs`, the thread is
 * left running, and the process is killed when it exits.
 */
export async function endThread(worker: Worker, maxMs = endMs): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const ended = worker.terminate().then(() => true)
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, maxMs, false)
  })
  const hasEnded = await Promise.race([ended, late])
  clearTimeout(timer)
  if (hasEnded) return
  worker.unref()
  // Node itself would wait for the thread after this event.
  process.once('exit', () => process.kill(process.pid, 'SIGKILL'))
}
