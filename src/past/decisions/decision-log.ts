/**
 * Collects decisions in blocks, and passes each block to the sink when it is full or after a delay. There
 * are two blocks: while one is being written, the other one is filled. If both are full, decisions are
 * lost and counted. Requests never wait.
 */
import { BlockWriter, mostDecisionBytes } from './block-writer.ts'
import { blockFields } from './fields.ts'
import { closeFrame, frameBytes } from './frame.ts'

const blockBytes = 4 * mostDecisionBytes
const defaultFlushMs = 100
/** The version of the format that is written. Version 1, which had no common parts, can also be read. */
export const formatVersion = 2

/** Which requests are recorded: a weighted sample, or all that fail and this share (0 to 1) of the others. */
export type RecordShare = 'sample' | number

/** The text of the setting `record`. */
export function settingText(share: RecordShare): string {
  if (share === 'sample') return share
  if (share <= 0) return 'errors'
  return share >= 1 ? 'all' : `${Number((share * 100).toPrecision(6))}%`
}

/** Stores whole blocks. The caller must not change the bytes until `done` is called. */
export interface BlockSink {
  readonly isBusy: boolean
  /** Resolves when no write is under way. */
  idle(): Promise<void>
  append(bytes: Buffer, length: number, done: (isWritten: boolean) => void): void
}

interface DecisionLogOptions {
  readonly proxy: string
  readonly worker: number
  readonly sink: BlockSink
  /** Identifies the key of the digests. */
  readonly digestKey: string
  readonly share: RecordShare
  /** Time after which a block is written even if it is not full. Default 100. */
  readonly flushMs?: number
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number
}

export class DecisionLog {
  /** Number of decisions that were lost since the start. */
  lost = 0
  readonly #options: DecisionLogOptions
  #timer: NodeJS.Timeout | undefined
  #filling = new BlockWriter(blockBytes, frameBytes)
  #spare: BlockWriter | undefined = new BlockWriter(blockBytes, frameBytes)
  #baseMs = 0
  #count = 0
  /** Number of lost decisions that no block reports yet. */
  #unreported = 0

  constructor(options: DecisionLogOptions) {
    this.#options = options
  }

  /** Base of the times in this block, in milliseconds since the Unix epoch. */
  get baseMs(): number {
    return this.#baseMs
  }

  /**
   * Returns the block for one more decision. If there is no room, returns undefined and counts the
   * decision as lost. Write the shared texts first, then the decision between `begin` and `end`.
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
    this.#filling.beginDecision()
    return this.#filling
  }

  #beginBlock(): void {
    const { proxy, worker, digestKey, share, now } = this.#options
    this.#baseMs = now()
    const block = this.#filling
    block.uint(blockFields.version, formatVersion)
    block.text(blockFields.proxy, proxy)
    block.uint(blockFields.worker, worker)
    block.double(blockFields.baseMs, this.#baseMs)
    block.text(blockFields.digestKey, digestKey)
    block.double(blockFields.share, share === 'sample' ? 0 : share)
    block.text(blockFields.setting, settingText(share))
    block.uint(blockFields.lost, this.#unreported)
    this.#unreported = 0
    this.#flushSoon()
  }

  /** Flushes after a delay, and again as long as the previous block is still being written. */
  #flushSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.flush()
      if (!this.#filling.isEmpty) this.#flushSoon()
    }, this.#options.flushMs ?? defaultFlushMs).unref()
  }

  /** Passes the block to the sink, unless it is empty or the previous one is still being written. */
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

  /** Passes the last block to the sink, after one that is still being written. */
  async end(): Promise<void> {
    await this.#options.sink.idle()
    this.stop()
  }

  /** Passes the last block to the sink, unless the previous one is still being written. */
  stop(): void {
    clearTimeout(this.#timer)
    this.flush()
  }
}
