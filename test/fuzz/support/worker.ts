/** Tries inputs of one target for some time, in a thread of its own, so that it may hang or die. */
import { parentPort, workerData } from 'node:worker_threads'
import { minimize } from './minimize.ts'
import { inputOf } from './mutate.ts'
import type { FuzzRun, FuzzTarget } from './target.ts'

export interface WorkerTask {
  readonly file: string
  readonly seed: number
  readonly milliseconds: number
  /** Index of the first input. */
  readonly from: number
  /** Two Int32: the index that is tried now, and a number that changes with every input. */
  readonly progress: SharedArrayBuffer
}

export type WorkerMessage =
  | { readonly type: 'ready' }
  | {
      readonly type: 'finding'
      readonly index: number
      readonly input: Uint8Array
      readonly error: string
    }
  | { readonly type: 'end'; readonly next: number }

/** Findings of one run; many more are one defect that was found often. */
const mostFindings = 10
const minimizeMs = 3000

const textOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error)

/** Names an error by its first line and the place that threw it. */
const kindOf = (error: string): string => {
  const [first = '', ...stack] = error.split('\n')
  return `${first.slice(0, 40)}${stack.find((line) => line.includes(' at ')) ?? ''}`
}

async function errorOf(run: FuzzRun, input: Buffer): Promise<string | undefined> {
  try {
    await run.check(Buffer.from(input))
    return undefined
  } catch (error) {
    return textOf(error)
  }
}

const send = (message: WorkerMessage) => parentPort?.postMessage(message)

async function main({ file, seed, milliseconds, from, progress }: WorkerTask): Promise<void> {
  const { default: target } = (await import(file)) as { default: FuzzTarget }
  const run = await target.start()
  const current = new Int32Array(progress)
  const kinds = new Set<string>()
  send({ type: 'ready' })
  const until = performance.now() + milliseconds
  let index = from
  for (; performance.now() < until && kinds.size < mostFindings; index++) {
    Atomics.store(current, 0, index)
    const input = inputOf(target, seed, index)
    const error = await errorOf(run, input)
    if (error === undefined || kinds.has(kindOf(error))) continue
    kinds.add(kindOf(error))
    const least = await minimize(
      input,
      async (candidate) => {
        Atomics.add(current, 1, 1)
        const other = await errorOf(run, candidate)
        return other !== undefined && kindOf(other) === kindOf(error)
      },
      minimizeMs,
    )
    send({ type: 'finding', index, input: least, error })
  }
  await run.close?.()
  send({ type: 'end', next: index })
}

await main(workerData as WorkerTask)
