import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { CommandRequest } from './commands.ts'
import type { CommandOutput } from './server/source.ts'

/** `thread.ts` in the source, a bundle of its own in the build folder. */
const entry = import.meta.url.endsWith('.ts')
  ? new URL('./thread.ts', import.meta.url)
  : new URL('./console-thread.js', import.meta.url)

/** A thread that has run no command for this long ends, so that its memory is free. */
const idleMs = 60_000

/** Runs commands one after the other in a thread, which starts when a command needs it. */
export class CommandThread {
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  #last: Promise<unknown> = Promise.resolve()

  run(request: CommandRequest): Promise<CommandOutput | undefined> {
    const result = this.#last.then(() => this.#run(request))
    this.#last = result.catch(() => undefined)
    return result
  }

  async #run(request: CommandRequest): Promise<CommandOutput | undefined> {
    clearTimeout(this.#idle)
    this.#worker ??= this.#start()
    const worker = this.#worker
    worker.postMessage(request)
    const ended = new AbortController()
    try {
      const exit = once(worker, 'exit', { signal: ended.signal }).then(() => {
        throw new Error('the thread of the command ended')
      })
      const [result] = await Promise.race([once(worker, 'message', { signal: ended.signal }), exit])
      return result
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      return { exitCode: 70, output: '', reports: [`The command failed: ${message}`] }
    } finally {
      ended.abort()
      this.#idle = setTimeout(() => this.#end(), idleMs).unref()
    }
  }

  #start(): Worker {
    const worker = new Worker(entry)
    worker.unref()
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
    })
    return worker
  }

  #end(): void {
    void this.#worker?.terminate()
    this.#worker = undefined
  }
}
