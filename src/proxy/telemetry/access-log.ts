/**
 * The access log's way out. Lines are gathered and handed to the file descriptor in batches, when
 * enough have come together or after 100 ms; only a kill -9 or a reader that never reads loses any.
 */
import { fstatSync } from 'node:fs'
// The package is CommonJS: Node finds no named export in it.
import sonicBoom from 'sonic-boom'

const { SonicBoom } = sonicBoom

/** Batches below PIPE_BUF are written whole even where several threads share one pipe. */
const atomicBytes = 4_096
const batchBytes = 8_192
const flushEveryMs = 100
/** A reader that does not read may cost this much memory; what comes after is dropped and counted. */
const mostPendingBytes = 64 * 1_048_576

export interface AccessLogOptions {
  readonly fd: number
  /** Do other threads write to the same descriptor? */
  readonly isShared: boolean
}

export class AccessLog {
  /** Lines that were lost: the reader is gone, or does not read. */
  droppedLines = 0
  readonly #sink: InstanceType<typeof SonicBoom>
  readonly #batchBytes: number
  readonly #timer: NodeJS.Timeout
  #pending = ''
  #pendingLines = 0
  #isOpen = true

  constructor({ fd, isShared }: AccessLogOptions) {
    const maxWrite = isShared && fstatSync(fd).isFIFO() ? atomicBytes : 2 * batchBytes
    this.#batchBytes = Math.min(batchBytes, maxWrite)
    this.#sink = new SonicBoom({ fd, maxWrite, maxLength: mostPendingBytes })
    this.#sink.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE' || error.code === 'EBADF') this.#isOpen = false
    })
    this.#sink.on('drop', (batch: string) => {
      this.droppedLines += batch.split('\n').length - 1
    })
    this.#timer = setInterval(() => this.#handOver(), flushEveryMs)
    this.#timer.unref()
  }

  /** Takes one line with its line feed. */
  write(line: string): void {
    if (this.#pending.length + line.length > this.#batchBytes) this.#handOver()
    this.#pending += line
    this.#pendingLines++
  }

  #handOver(): void {
    if (this.#pendingLines === 0) return
    if (this.#isOpen) this.#sink.write(this.#pending)
    else this.droppedLines += this.#pendingLines
    this.#pending = ''
    this.#pendingLines = 0
  }

  /** Resolves when everything so far is with the operating system. */
  flush(): Promise<void> {
    this.#handOver()
    if (!this.#isOpen) return Promise.resolve()
    // An error has been counted already; whoever flushes wants to go on.
    return new Promise((resolve) => this.#sink.flush(() => resolve()))
  }

  /** For the moment before the process or the thread ends; blocks. */
  flushSync(): void {
    this.#handOver()
    if (!this.#isOpen) return
    try {
      this.#sink.flushSync()
    } catch {
      // Nobody is left to tell.
    }
  }

  /** Flushes and takes no more timers; the descriptor stays open, others may use it. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
