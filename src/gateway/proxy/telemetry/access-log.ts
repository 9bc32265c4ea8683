/**
 * Writes the access log to a file descriptor in batches. A batch is written when it is full, or after 100
 * ms. Lines are lost only if the process is killed or the reader does not read.
 */
import { fstatSync } from 'node:fs'
// The package is CommonJS, so Node finds no named exports.
import sonicBoom from 'sonic-boom'
import { LineBytes } from './line-bytes.ts'
import type { OutputLock } from './output-lock.ts'

const { SonicBoom } = sonicBoom

/**
 * Maximum size of a batch for a file descriptor that threads share, unless it is a file. A pipe takes this much
 * whole or not at all (PIPE_BUF), so that lines stay whole even if another process writes to it.
 */
const atomicBytes = 4_096
const batchBytes = 64 * 1_024
/** Extra space, so that the last line of a batch rarely makes its buffer grow. */
const lineBytes = 8 * 1_024
const lineFeed = 0x0a
const flushEveryMs = 100
/** Maximum size of lines that wait for a slow reader. Further lines are dropped and counted. */
const maxPendingBytes = 64 * 1_048_576
/** After this many bytes, a thread gives the lock to a waiting thread before it writes more. */
const turnBytes = 1_048_576
/** How long a thread waits before it tries again to take the lock. */
const lockRetryMs = 2
/** How long the last lines of a thread wait for the lock, for example if the reader is slow. */
const lastLockMs = 500

interface AccessLogOptions {
  readonly fd: number
  /** The lock of the file descriptor, if other threads write to it too. */
  readonly lock?: OutputLock | undefined
}

export class AccessLog {
  /** Number of lines that were dropped because the reader is gone or does not read. */
  droppedLines = 0
  readonly #fd: number
  readonly #lock: OutputLock | undefined
  readonly #sink: InstanceType<typeof SonicBoom>
  readonly #timer: NodeJS.Timeout
  readonly #maxBatchBytes: number
  /** The lines of the next batch. */
  readonly #lines: LineBytes
  #pendingLines = 0
  /** Number of bytes of those lines that are complete. */
  #completeBytes = 0
  /** Batches that wait for the lock. */
  #waiting: Buffer[] = []
  #waitingBytes = 0
  /** Whether this thread has the lock, so that the sink may write. */
  #isLocked = false
  #lockTimer: NodeJS.Timeout | undefined
  #onFlushed: (() => void)[] = []
  #droppedBatches = 0
  #isOpen = true

  constructor({ fd, lock }: AccessLogOptions) {
    this.#fd = fd
    this.#lock = lock
    const maxWrite = lock !== undefined && !fstatSync(fd).isFile() ? atomicBytes : batchBytes
    this.#maxBatchBytes = maxWrite
    this.#lines = new LineBytes(maxWrite + lineBytes)
    this.#sink = new SonicBoom({ fd, maxWrite, maxLength: maxPendingBytes, contentMode: 'buffer' })
    this.#sink.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE' || error.code === 'EBADF') this.#closeSink()
      this.#unlock()
    })
    // The sink has written every batch.
    this.#sink.on('drain', () => {
      if (this.#waiting.length === 0) this.#lines.release()
      this.#unlock()
    })
    this.#sink.on('drop', (batch: Uint8Array) => {
      this.#droppedBatches++
      this.#countDropped(batch)
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
    if (!this.#isOpen) this.droppedLines += this.#pendingLines
    else if (this.#lock === undefined) this.#write(batch)
    else this.#writeLocked(batch)
    this.#pendingLines = 0
  }

  #write(batch: Buffer): void {
    // The types of the package allow only text, but it accepts bytes.
    this.#sink.write(batch as Uint8Array as never)
  }

  #writeLocked(batch: Buffer): void {
    if (this.#waitingBytes + batch.length > maxPendingBytes) {
      this.#countDropped(batch)
      return
    }
    this.#waiting.push(batch)
    this.#waitingBytes += batch.length
    this.#writeWaiting()
  }

  /** Writes the batches that wait if no other thread writes, otherwise tries again later. */
  #writeWaiting(): void {
    if (this.#isLocked || this.#lockTimer !== undefined || this.#waiting.length === 0) return
    if (this.#lock?.tryAcquire() === false) {
      this.#writeLater()
      return
    }
    this.#isLocked = true
    let [count, bytes] = [0, 0]
    while (count < this.#waiting.length && bytes < turnBytes) {
      bytes += this.#waiting[count++]?.length ?? 0
    }
    this.#waitingBytes -= bytes
    this.#droppedBatches = 0
    for (const batch of this.#waiting.splice(0, count)) this.#write(batch)
    // The sink keeps lines after an error, such as a full disk, and writes nothing if they are too many.
    if (this.#droppedBatches === count) this.#unlock()
  }

  #writeLater(): void {
    this.#lockTimer = setTimeout(() => {
      this.#lockTimer = undefined
      this.#writeWaiting()
    }, lockRetryMs)
  }

  #unlock(): void {
    if (!this.#isLocked) return
    this.#isLocked = false
    const isWanted = this.#lock?.release() === true
    if (this.#waiting.length === 0) {
      for (const onFlushed of this.#onFlushed.splice(0)) onFlushed()
    } else if (isWanted) this.#writeLater()
    else this.#writeWaiting()
  }

  /** The reader is gone. */
  #closeSink(): void {
    this.#isOpen = false
    for (const batch of this.#waiting) this.#countDropped(batch)
    this.#waiting = []
    this.#waitingBytes = 0
  }

  #countDropped(batch: Uint8Array): void {
    for (const byte of batch) if (byte === lineFeed) this.droppedLines++
  }

  /** Resolves when all lines that were written before are flushed. */
  flush(): Promise<void> {
    this.#handOver()
    if (!this.#isOpen) return Promise.resolve()
    if (this.#lock !== undefined) {
      if (!this.#isLocked && this.#waiting.length === 0) return Promise.resolve()
      return new Promise((resolve) => this.#onFlushed.push(resolve))
    }
    // Errors were already counted, so a flush never fails.
    return new Promise((resolve) => this.#sink.flush(() => resolve()))
  }

  /** Writes all waiting lines synchronously. Called before the process or thread ends. */
  flushSync(): void {
    if (!this.#isOpen) return
    const rest = Buffer.concat([...this.#waiting, this.#lines.take(this.#completeBytes)])
    this.#waiting = []
    this.#waitingBytes = 0
    this.#completeBytes = 0
    this.#pendingLines = 0
    if (this.#lock !== undefined && !this.#isLocked) {
      // Without the lock, the lines are dropped: they could split a line of another thread.
      if (rest.length === 0 || !this.#lock.acquireSync(lastLockMs)) return
    }
    try {
      this.#sink.flushSync()
      if (rest.length === 0) return
      // The sink writes asynchronously, which would not finish before the end.
      const last = new SonicBoom({ fd: this.#fd, sync: true, contentMode: 'buffer' })
      last.write(rest as Uint8Array as never)
      last.flushSync()
    } catch {
      // The process ends, so the error cannot be reported.
    } finally {
      // If the sink still writes, `drain` releases the lock.
      if (!this.#isLocked) this.#lock?.release()
    }
  }

  /** Flushes all lines and stops the timer. The file descriptor stays open for other users. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
