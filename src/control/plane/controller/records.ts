/**
 * Collects the decision records that proxies send, so that changes can be judged without a disk. If replicas share a
 * NATS server, the records are published there, since each proxy is connected to one replica only.
 */
import type { RecordReport } from '../../../ground/model/record-report.ts'
import { readBlocks } from '../../../past/decisions/read.ts'
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
  readonly #notify: Options['notify']
  /** Proxies that have sent records of other Gateways. */
  readonly #refused = new Set<string>()
  #bytes = 0
  #order = 0

  constructor({ nats, notify }: Options) {
    this.#notify = notify
    if (nats === undefined) return
    const onProblem = (text: string) => notify('warn', text)
    this.#publisher = new DecisionPublisher({ servers: nats, onProblem })
  }

  /** `gateway` is the Gateway of the proxy, as `namespace/name`. Blocks with records of other Gateways are ignored. */
  readonly take = (proxy: string, gateway: string, { block, isRepeated }: RecordReport): void => {
    if (block.length === 0 || block.length > maxBlockBytes) return
    if (!isOf(gateway, block)) {
      if (this.#refused.has(proxy)) return
      this.#refused.add(proxy)
      const text = `proxy ${proxy} of Gateway ${gateway} sent decision records of another Gateway; they are ignored`
      this.#notify('warn', text)
      return
    }
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

/** Whether all readable records of a block belong to a Gateway, or to none. */
function isOf(gateway: string, block: Uint8Array): boolean {
  for (const result of readBlocks(Buffer.from(block), 'a report')) {
    if ('decision' in result && (result.decision.route.gateway ?? gateway) !== gateway) return false
  }
  return true
}
