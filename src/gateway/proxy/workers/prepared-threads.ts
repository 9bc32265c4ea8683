/**
 * Worker threads. A thread can be prepared before its settings are known: it loads its code while the main
 * thread loads the control plane and reads the configuration, which halves the time of a start.
 */
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { tuneCollections } from '../../../ground/base/idle-trim.ts'
import type { WorkerSettings } from './worker-settings.ts'

/**
 * The entry of the thread: `worker.ts` in the source, a bundle of its own in the build folder.
 */
const entry = import.meta.url.endsWith('.ts')
  ? new URL('./worker.ts', import.meta.url)
  : new URL('./proxy-worker.js', import.meta.url)

/** Only Linux distributes connections among sockets that share a port. */
const canShare = process.platform === 'linux'

/** Returns the number of workers for the setting. */
export function workerCount(asked: number | 'auto' | undefined): number {
  if (!canShare) return 1
  return asked === 'auto' ? availableParallelism() : (asked ?? 1)
}

const prepared: Worker[] = []

function newThread(): Worker {
  tuneCollections()
  return new Worker(entry)
}

/** Starts threads that load their code and do not keep the process alive until they get settings. */
export function prepareThreads(asked: number | 'auto' | undefined): void {
  for (let missing = workerCount(asked) - prepared.length; missing > 0; missing--) {
    const thread = newThread()
    thread.unref()
    // A thread that ends before it is used is replaced by one whose failure is reported.
    thread.once('error', () => undefined)
    thread.once('exit', () => prepared.splice(prepared.indexOf(thread) >>> 0, 1))
    prepared.push(thread)
  }
}

/** Starts a worker with its settings, in a prepared thread if there is one. */
export function startThread(settings: WorkerSettings): Worker {
  const thread = prepared.pop() ?? newThread()
  thread.removeAllListeners()
  thread.ref()
  thread.postMessage(settings)
  return thread
}
