/**
 * Writes the access log to a file descriptor in batches. A batch is written when it is full, or after 100
 * ms. Lines are lost only if the process is killed or the reader does not read.
 */
import { fstatSync } from 'node:fs'
// The package is CommonJS, so Node finds no named exports.
import sonicBoom from 'sonic-boom'
import { LineBytes } from './line-bytes.ts'

const { SonicBoom } = sonicBoom

/**
 * Maximum size of a batch that threads write to a file descriptor that they share, unless it is a file. A pipe
 * takes this much whole or not at all (PIPE_BUF), and so does a socket of the machine in practice, because it
 * is one message. A larger write may be cut, and another thread could write into the gap.
 */
const atomicBytes = 4_096
const batchBytes = 64 * 1_024
/** Extra space, so that the last line of a batch rarely makes its buffer grow. */
const lineBytes = 8 * 1_024
const lineFeed = 0x0a
const flushEveryMs = 100
/** Maximum size of lines that wait for a slow reader. Further lines are dropped and counted. */
const maxPendingBytes = 64 * 1_048_576

interface AccessLogOptions {
  readonly fd: number
  /** Do other threads write to the same file descriptor? */
  readonly isShared: boolean
}

export class AccessLog {
  /** Number of lines that were dropped because the reader is gone or does not read. */
  droppedLines = 0
  readonly #fd: number
  readonly #sink: InstanceType<typeof SonicBoom>
  readonly #timer: NodeJS.Timeout
  readonly #maxBatchBytes: number
  /** The lines of the next batch. */
  readonly #lines: LineBytes
  #pendingLines = 0
  /** Number of bytes of those lines that are complete. */
  #completeBytes = 0
  #isOpen = true

  constructor({ fd, isShared }: AccessLogOptions) {
    this.#fd = fd
    const maxWrite = isShared && !fstatSync(fd).isFile() ? atomicBytes : batchBytes
    this.#maxBatchBytes = maxWrite
    this.#lines = new LineBytes(maxWrite + lineBytes)
    this.#sink = new SonicBoom({ fd, maxWrite, maxLength: maxPendingBytes, contentMode: 'buffer' })
    this.#sink.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE' || error.code === 'EBADF') this.#isOpen = false
    })
    // The sink has written every batch.
    this.#sink.on('drain', () => this.#lines.release())
    this.#sink.on('drop', (batch: Uint8Array) => {
      for (const byte of batch) if (byte === lineFeed) this.droppedLines++
    })
    this.#timer = setInterval(() => this.#handOver(), flushEveryMs)
    this.#timer.unref()
  }

  /** Begins a line, and drops one that was not ended. Returns where to write it. */
  begin(): LineBytes {
    this.#lines.length = this.#completeBytes
    return this.#lines
  }

  /** Ends the line, which includes its line feed. */
  end(): void {
    if (this.#lines.length > this.#maxBatchBytes) this.#handOver()
    this.#pendingLines++
    this.#completeBytes = this.#lines.length
    if (this.#completeBytes > this.#maxBatchBytes) this.#handOver()
  }

  /** Passes the complete lines on. */
  #handOver(): void {
    if (this.#pendingLines === 0) return
    this.#send(this.#lines.take(this.#completeBytes))
    this.#completeBytes = 0
  }

  #send(batch: Buffer): void {
    // The types of the package allow only text, but it accepts bytes.
    if (this.#isOpen) this.#sink.write(batch as Uint8Array as never)
    else this.droppedLines += this.#pendingLines
    this.#pendingLines = 0
  }

  /** Resolves when all lines that were written before are flushed. */
  flush(): Promise<void> {
    this.#handOver()
    if (!this.#isOpen) return Promise.resolve()
    // Errors were already counted, so a flush never fails.
    return new Promise((resolve) => this.#sink.flush(() => resolve()))
  }

  /** Writes all waiting lines synchronously. Called before the process or thread ends. */
  flushSync(): void {
    if (!this.#isOpen) return
    const rest = this.#lines.take(this.#completeBytes)
    this.#completeBytes = 0
    this.#pendingLines = 0
    try {
      this.#sink.flushSync()
      if (rest.length === 0) return
      // The sink writes asynchronously, which would not finish before the end.
      const last = new SonicBoom({ fd: this.#fd, sync: true, contentMode: 'buffer' })
      last.write(rest as Uint8Array as never)
      last.flushSync()
    } catch {
      // The process ends, so the error cannot be reported.
    }
  }

  /** Flushes all lines and stops the timer. The file descriptor stays open for other users. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
