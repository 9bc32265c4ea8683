/**
 * Spans on their way to a collector: gathered, sent in batches, sent again where that may help, and
 * dropped and counted where a collector does not keep up. Requests never wait for any of it.
 */
import type { Attribute, TracingRules } from '../../../exchange/observe.ts'
import { encodeSpans } from './encode.ts'
import {
  type CollectorAddress,
  GrpcSender,
  HttpSender,
  type Sender,
  type SendResult,
} from './senders.ts'
import type { FinishedSpan } from './span.ts'

/** Spans that may wait for one collector. */
const mostWaiting = 2_048
const mostPerBatch = 512
const batchEveryMs = 500
const firstBackoffMs = 500
const longestBackoffMs = 30_000
/** A connection that nothing was sent on for this long is closed. */
const idleMs = 60_000

interface ExporterOptions {
  readonly rules: TracingRules
  /** Attributes of the proxy itself, for the Gateway whose spans these are. */
  readonly resource: readonly Attribute[]
  readonly version: string
  /** Throws or rejects where the collector cannot be reached at all. */
  readonly resolve: () => CollectorAddress | Promise<CollectorAddress>
  readonly onSpans: (exported: number, dropped: number) => void
}

export class SpanExporter {
  readonly #options: ExporterOptions
  readonly #resource: readonly Attribute[]
  readonly #sender: Sender
  #waiting: FinishedSpan[] = []
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #backoffMs = 0

  constructor(options: ExporterOptions) {
    this.#options = options
    const { rules, resource } = options
    const names = new Set(rules.resources.map(([name]) => name))
    this.#resource = [...resource.filter(([name]) => !names.has(name)), ...rules.resources]
    this.#sender = rules.protocol === 'GRPC' ? new GrpcSender() : new HttpSender()
  }

  add(span: FinishedSpan): void {
    if (this.#waiting.length >= mostWaiting) {
      this.#options.onSpans(0, 1)
      return
    }
    this.#waiting.push(span)
    if (this.#sending !== undefined) return
    const isFull = this.#waiting.length === mostPerBatch && this.#backoffMs === 0
    if (isFull) this.#sendSoon(0)
    else if (this.#waiting.length === 1) this.#sendSoon(batchEveryMs)
  }

  /** Sends what waits, once, whatever becomes of it; for the end of the process. */
  async flush(): Promise<void> {
    await this.#sending
    while (this.#waiting.length > 0) {
      if ((await this.#sendBatch()) === 'again') break
    }
    this.#options.onSpans(0, this.#waiting.length)
    this.#waiting = []
    clearTimeout(this.#timer)
    this.#sender.close()
  }

  #sendSoon(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#send(), delayMs)
    this.#timer.unref()
  }

  #send(): void {
    this.#sending = this.#sendBatch().then((result) => {
      this.#sending = undefined
      this.#backoffMs =
        result === 'again'
          ? Math.min(Math.max(this.#backoffMs * 2, firstBackoffMs), longestBackoffMs)
          : 0
      if (this.#waiting.length > 0) this.#sendSoon(this.#backoffMs || batchEveryMs)
      else this.#closeWhenIdle()
    })
  }

  #closeWhenIdle(): void {
    this.#timer = setTimeout(() => this.#sender.close(), idleMs)
    this.#timer.unref()
  }

  /** Never rejects. Spans that may be taken later wait at the front again. */
  async #sendBatch(): Promise<SendResult> {
    const { resolve, version, onSpans } = this.#options
    const batch = this.#waiting.splice(0, mostPerBatch)
    let result: SendResult
    try {
      const address = await resolve()
      result = await this.#sender.send(address, encodeSpans(this.#resource, batch, version))
    } catch {
      // Nowhere to send to for now: endpoints may come, or a policy be repaired.
      result = 'again'
    }
    if (result === 'again') {
      const room = mostWaiting - this.#waiting.length
      this.#waiting.unshift(...batch.slice(0, room))
      onSpans(0, Math.max(0, batch.length - room))
    } else onSpans(result === 'sent' ? batch.length : 0, result === 'sent' ? 0 : batch.length)
    return result
  }
}
