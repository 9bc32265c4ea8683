/**
 * Collects the decision records that proxies send, so that changes can be judged without a disk. If replicas share a
 * NATS server, the records are published there, since each proxy is connected to one replica only.
 */
import type { RecordReport } from '../../../ground/model/record-report.ts'
import { DecisionPublisher } from '../../log/nats-decisions.ts'
import type { LogLevel } from '../parts.ts'

interface Options {
  readonly nats?: string | undefined
  readonly notify: (severity: LogLevel, text: string) => void
}

/** Maximum bytes of records in memory. */
const maxBytes = 16 * 1024 * 1024
/** Maximum size of a block. Proxies send smaller ones. */
const maxBlockBytes = 512 * 1024

interface Collected {
  readonly order: number
  readonly bytes: Buffer
}

export class CollectedRecords {
  readonly #publisher: DecisionPublisher | undefined
  /** Blocks by proxy, oldest first. */
  readonly #blocks = new Map<string, Collected[]>()
  #bytes = 0
  #order = 0

  constructor({ nats, notify }: Options) {
    if (nats === undefined) return
    const onProblem = (text: string) => notify('warn', text)
    this.#publisher = new DecisionPublisher({ servers: nats, onProblem })
  }

  readonly take = (proxy: string, { block, isRepeated }: RecordReport): void => {
    if (block.length === 0 || block.length > maxBlockBytes) return
    if (this.#publisher !== undefined) {
      if (!isRepeated) this.#publisher.publish(block)
      return
    }
    const known = this.#blocks.get(proxy) ?? []
    if (isRepeated && known.some(({ bytes }) => bytes.equals(block))) return
    // A copy, because the block may be a view of a larger buffer.
    known.push({ order: this.#order++, bytes: Buffer.from(block) })
    this.#blocks.set(proxy, known)
    this.#bytes += block.length
    while (this.#bytes > maxBytes) this.#drop()
  }

  /** Drops the oldest block of the proxy with the most blocks, so that one proxy does not push the others out. */
  #drop(): void {
    const [largest] = [...this.#blocks].sort(([, a], [, b]) => b.length - a.length)
    if (largest === undefined) return
    const [proxy, blocks] = largest
    this.#bytes -= blocks.shift()?.bytes.length ?? 0
    if (blocks.length === 0) this.#blocks.delete(proxy)
  }

  /** The blocks of all proxies, newest first. */
  newest(): Buffer[] {
    return [...this.#blocks.values()]
      .flat()
      .sort((a, b) => b.order - a.order)
      .map(({ bytes }) => bytes)
  }

  async close(): Promise<void> {
    await this.#publisher?.close()
  }
}
