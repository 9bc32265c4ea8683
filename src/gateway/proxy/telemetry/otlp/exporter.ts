/**
 * Sends spans to a collector in batches. If the collector is slow, spans are dropped, so requests never
 * wait.
 */
import { hostname } from 'node:os'
import type { Attribute, TracingRules } from '../../../../ground/exchange/observe.ts'
import { encodeSpans, type FinishedSpan } from './encode.ts'
import {
  type CollectorAddress,
  GrpcSender,
  HttpSender,
  type Sender,
  type SendResult,
} from './senders.ts'

/** Maximum number of spans that wait for one collector. */
const maxWaitingSpans = 2_048
const maxBatchSpans = 512
const batchEveryMs = 500
const firstBackoffMs = 500
const maxBackoffMs = 30_000
/** Idle time after which the connection is closed. */
const idleMs = 60_000

interface ExporterOptions {
  readonly rules: TracingRules
  /** Resource attributes of the proxy and of the Gateway that the spans belong to. */
  readonly resource: readonly Attribute[]
  readonly version: string
  /** Resolves the address of the collector. Rejects if that fails. */
  readonly resolve: () => Promise<CollectorAddress>
  readonly onSpans: (exported: number, dropped: number) => void
}

class SpanExporter {
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
    if (this.#waiting.length >= maxWaitingSpans) {
      this.#options.onSpans(0, 1)
      return
    }
    this.#waiting.push(span)
    if (this.#sending !== undefined) return
    const isFull = this.#waiting.length === maxBatchSpans && this.#backoffMs === 0
    if (isFull) this.#sendSoon(0)
    else if (this.#waiting.length === 1) this.#sendSoon(batchEveryMs)
  }

  /** Sends all waiting spans once, without retries. Called before the process ends. */
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
          ? Math.min(Math.max(this.#backoffMs * 2, firstBackoffMs), maxBackoffMs)
          : 0
      if (this.#waiting.length > 0) this.#sendSoon(this.#backoffMs || batchEveryMs)
      else this.#closeWhenIdle()
    })
  }

  #closeWhenIdle(): void {
    this.#timer = setTimeout(() => this.#sender.close(), idleMs)
    this.#timer.unref()
  }

  /** Sends one batch. Never rejects. Spans that can be sent again return to the front of the queue. */
  async #sendBatch(): Promise<SendResult> {
    const { resolve, version, onSpans } = this.#options
    const batch = this.#waiting.splice(0, maxBatchSpans)
    let result: SendResult
    try {
      const address = await resolve()
      result = await this.#sender.send(address, encodeSpans(this.#resource, batch, version))
    } catch {
      // The collector cannot be resolved now, but that may change with its endpoints or policies.
      result = 'again'
    }
    if (result === 'again') {
      const room = maxWaitingSpans - this.#waiting.length
      this.#waiting.unshift(...batch.slice(0, room))
      onSpans(0, Math.max(0, batch.length - room))
    } else if (result === 'sent') onSpans(batch.length, 0)
    else onSpans(0, batch.length)
    return result
  }
}

/** A listener with its Gateway (`namespace/name`), whose policy enables tracing. */
interface TracedListener {
  readonly place: { readonly gateway: string }
}

interface ExportersOptions<Listener> {
  readonly version: string
  readonly resolve: (rules: TracingRules, listener: Listener) => Promise<CollectorAddress>
  readonly onSpans: (exported: number, dropped: number) => void
}

/** Manages one exporter for each tracing policy and Gateway. Unused exporters are garbage collected. */
export class SpanExporters<Listener extends TracedListener> {
  readonly #options: ExportersOptions<Listener>
  readonly #byRules = new WeakMap<TracingRules, Map<string, SpanExporter>>()
  readonly #all = new Set<WeakRef<SpanExporter>>()

  constructor(options: ExportersOptions<Listener>) {
    this.#options = options
  }

  add(rules: TracingRules, listener: Listener, spans: readonly FinishedSpan[]): void {
    const exporter = this.#of(rules, listener)
    for (const span of spans) exporter.add(span)
  }

  /** Sends all waiting spans. Called before the process ends. */
  async flush(): Promise<void> {
    await Promise.all([...this.#all].map((exporter) => exporter.deref()?.flush()))
  }

  #of(rules: TracingRules, listener: Listener): SpanExporter {
    const { gateway } = listener.place
    let exporters = this.#byRules.get(rules)
    if (exporters === undefined) {
      exporters = new Map()
      this.#byRules.set(rules, exporters)
    }
    let exporter = exporters.get(gateway)
    if (exporter === undefined) {
      const { version, resolve, onSpans } = this.#options
      exporter = new SpanExporter({
        rules,
        version,
        onSpans,
        resource: describe(gateway, version),
        resolve: () => resolve(rules, listener),
      })
      exporters.set(gateway, exporter)
      for (const known of this.#all) if (known.deref() === undefined) this.#all.delete(known)
      this.#all.add(new WeakRef(exporter))
    }
    return exporter
  }
}

/** Returns the default resource attributes of a proxy. The policy may override them. */
function describe(gateway: string, version: string): Attribute[] {
  const slash = gateway.indexOf('/')
  return [
    ['service.name', gateway.slice(slash + 1)],
    ['service.namespace', gateway.slice(0, slash)],
    ['service.version', version],
    ['service.instance.id', process.env.POD_NAME ?? `${hostname()}-${process.pid}`],
    ['host.name', hostname()],
  ]
}
