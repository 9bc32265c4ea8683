/**
 * Gathers decisions into blocks and hands each block to the ring when it is full, or after 100 ms.
 * Two blocks take turns: while one is written, the other is filled. If both are full, decisions are
 * lost and counted; requests never wait.
 */
import { BlockWriter, mostDecisionBytes } from './block-writer.ts'
import { blockFields } from './fields.ts'
import { closeFrame, frameBytes } from './frame.ts'

const blockBytes = 4 * mostDecisionBytes
const flushAfterMs = 100
export const formatVersion = 1

/** Takes whole blocks. The bytes must stay as they are until `done` is called. */
export interface BlockSink {
  readonly isBusy: boolean
  append(bytes: Buffer, length: number, done: (isWritten: boolean) => void): void
}

interface DecisionLogOptions {
  readonly proxy: string
  readonly worker: number
  readonly sink: BlockSink
  /** Name of the key of the digests. */
  readonly digestKey: string
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number
}

export class DecisionLog {
  /** Decisions that were lost since the start. */
  lost = 0
  readonly #options: DecisionLogOptions
  #timer: NodeJS.Timeout | undefined
  #filling = new BlockWriter(blockBytes, frameBytes)
  #spare: BlockWriter | undefined = new BlockWriter(blockBytes, frameBytes)
  #baseMs = 0
  #count = 0
  /** Lost decisions that no block reports yet. */
  #unreported = 0

  constructor(options: DecisionLogOptions) {
    this.#options = options
  }

  /** Milliseconds since the Unix epoch that the times of this block are relative to. */
  get baseMs(): number {
    return this.#baseMs
  }

  /**
   * The block for one more decision; undefined if there is no room, which loses the decision. Write
   * its shared texts first, then the decision between `begin` and `end`.
   */
  block(): BlockWriter | undefined {
    if (!this.#filling.hasRoom) this.flush()
    if (!this.#filling.hasRoom) {
      this.lost++
      this.#unreported++
      return undefined
    }
    if (this.#filling.isEmpty) this.#beginBlock()
    this.#count++
    return this.#filling
  }

  #beginBlock(): void {
    const { proxy, worker, digestKey, now } = this.#options
    this.#baseMs = now()
    const block = this.#filling
    block.uint(blockFields.version, formatVersion)
    block.text(blockFields.proxy, proxy)
    block.uint(blockFields.worker, worker)
    block.double(blockFields.baseMs, this.#baseMs)
    block.text(blockFields.digestKey, digestKey)
    block.uint(blockFields.lost, this.#unreported)
    this.#unreported = 0
    this.#flushSoon()
  }

  /** Flushes later. If the block before is then still being written, tries again later. */
  #flushSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.flush()
      if (!this.#filling.isEmpty) this.#flushSoon()
    }, flushAfterMs).unref()
  }

  /** Hands the block over, unless it is empty or the one before is still being written. */
  flush(): void {
    const full = this.#filling
    const spare = this.#spare
    if (full.isEmpty || spare === undefined || this.#options.sink.isBusy) return
    const count = this.#count
    this.#count = 0
    this.#filling = spare
    this.#spare = undefined
    closeFrame(full.bytes, full.used)
    this.#options.sink.append(full.bytes, full.used, (isWritten) => {
      if (!isWritten) {
        this.lost += count
        this.#unreported += count
      }
      full.clear()
      this.#spare = full
    })
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.flush()
  }
}
