/** A Web Worker that folds exports: each message has one and core.wasm; the answer is its digests or an error. */
import { provideBuilt } from '../../../src/engines/core/built-files-browser.ts'
import { digestsOf } from './digests.ts'

interface Job {
  readonly core: Uint8Array<ArrayBuffer>
  readonly name: string
  readonly text: string
}

/** What this file uses of a worker's global object; the types of Node have none. */
interface WorkerScope {
  onmessage(message: { readonly data: Job }): void
  postMessage(answer: object): void
}

const scope = globalThis as unknown as WorkerScope
scope.onmessage = ({ data: { core, name, text } }) => {
  provideBuilt('core.wasm', core)
  try {
    scope.postMessage({ digests: digestsOf(name, text) })
  } catch (error) {
    scope.postMessage({ error: String((error as Error).stack) })
  }
}
