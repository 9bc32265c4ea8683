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
const batchBytes = 64 * 1_024
/** A batch below this is copied, so that its buffer can be filled again. */
const copiedBytes = 16 * 1_024
/** UTF-8 needs at most so many bytes for a unit of a string. */
const mostBytesPerUnit = 3
const lineFeed = 0x0a
const flushEveryMs = 100
/** A reader that does not read may cost this much memory; what comes after is dropped and counted. */
const mostPendingBytes = 64 * 1_048_576

interface AccessLogOptions {
  readonly fd: number
  /** Do other threads write to the same descriptor? */
  readonly isShared: boolean
}

export class AccessLog {
  /** Lines that were lost: the reader is gone, or does not read. */
  droppedLines = 0
  readonly #fd: number
  readonly #sink: InstanceType<typeof SonicBoom>
  readonly #timer: NodeJS.Timeout
  /** Lines that are not handed over yet, as bytes: a string of many parts is slow to grow. */
  #pending: Buffer
  #pendingBytes = 0
  #pendingLines = 0
  #isOpen = true

  constructor({ fd, isShared }: AccessLogOptions) {
    this.#fd = fd
    const maxWrite = isShared && fstatSync(fd).isFIFO() ? atomicBytes : batchBytes
    this.#pending = Buffer.allocUnsafeSlow(Math.min(batchBytes, maxWrite))
    this.#sink = new SonicBoom({ fd, maxWrite, maxLength: mostPendingBytes, contentMode: 'buffer' })
    this.#sink.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE' || error.code === 'EBADF') this.#isOpen = false
    })
    this.#sink.on('drop', (batch: Uint8Array) => {
      for (const byte of batch) if (byte === lineFeed) this.droppedLines++
    })
    this.#timer = setInterval(() => this.#handOver(), flushEveryMs)
    this.#timer.unref()
  }

  /** Takes one line with its line feed. */
  write(line: string): void {
    const most = line.length * mostBytesPerUnit
    if (this.#pending.length - this.#pendingBytes < most) this.#handOver()
    this.#pendingLines++
    if (most <= this.#pending.length) {
      this.#pendingBytes += this.#pending.write(line, this.#pendingBytes)
    } else this.#send(Buffer.from(line))
  }

  #handOver(): void {
    if (this.#pendingLines === 0) return
    const batch = this.#pending.subarray(0, this.#pendingBytes)
    this.#pendingBytes = 0
    if (batch.length < copiedBytes) this.#send(Buffer.from(batch))
    else {
      this.#send(batch)
      this.#pending = Buffer.allocUnsafeSlow(this.#pending.length)
    }
  }

  #send(batch: Buffer): void {
    // Its types know of text alone.
    if (this.#isOpen) this.#sink.write(batch as Uint8Array as never)
    else this.droppedLines += this.#pendingLines
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
    if (!this.#isOpen) return
    const rest = this.#pending.subarray(0, this.#pendingBytes)
    this.#pendingBytes = 0
    this.#pendingLines = 0
    try {
      this.#sink.flushSync()
      if (rest.length === 0) return
      // Handed to the sink it would go to another thread, for which nobody waits any more.
      const last = new SonicBoom({ fd: this.#fd, sync: true, contentMode: 'buffer' })
      last.write(rest as Uint8Array as never)
      last.flushSync()
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
