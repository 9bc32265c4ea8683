/**
 * Sends decision records to the controller, which keeps them in memory. After each connection, the newest blocks are
 * sent again, because the controller may have been restarted, or another replica may have answered.
 */
import type { RecordReport } from '../../../ground/model/record-report.ts'

/** Maximum bytes of the newest blocks, of a sample and of failures each. */
const keptBytes = 128 * 1024

interface RecentBlock {
  readonly block: Uint8Array
  isSent: boolean
}

class RecentBlocks {
  readonly #blocks: RecentBlock[] = []
  #bytes = 0

  add(kept: RecentBlock): void {
    this.#blocks.push(kept)
    this.#bytes += kept.block.length
    while (this.#bytes > keptBytes) this.#bytes -= this.#blocks.shift()?.block.length ?? this.#bytes
  }

  [Symbol.iterator](): IterableIterator<RecentBlock> {
    return this.#blocks.values()
  }
}

export class RecordUplink {
  readonly #send: (report: RecordReport) => boolean
  readonly #sample = new RecentBlocks()
  readonly #others = new RecentBlocks()

  /** `send` returns false if no controller is connected. */
  constructor(send: (report: RecordReport) => boolean) {
    this.#send = send
  }

  /** Failures and the sample have separate space, so that many failures do not push the sample out. */
  add(block: Uint8Array, isSample: boolean): void {
    const isSent = this.#send({ block, isRepeated: false })
    const kept = isSample ? this.#sample : this.#others
    kept.add({ block, isSent })
  }

  /** Called when a controller has answered. */
  connected(): void {
    for (const kept of [...this.#others, ...this.#sample]) {
      const { block, isSent: isRepeated } = kept
      if (this.#send({ block, isRepeated })) kept.isSent = true
    }
  }
}
