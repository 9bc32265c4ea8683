/**
 * Sends spans and entries of the access log to collectors in batches. If a collector is slow, they are dropped, so
 * requests never wait.
 */
import { hostname } from 'node:os'
import type { Attribute, ExportRules } from '../../../../ground/exchange/observe.ts'
import {
  type CollectorAddress,
  GrpcSender,
  HttpSender,
  type Sender,
  type SendResult,
} from './senders.ts'

/** Maximum number of items that wait for one collector. */
const maxWaiting = 2_048
const maxBatch = 512
/** The same in bytes. Collectors accept 4 MiB over gRPC by default. */
const maxWaitingBytes = 16 * 1024 * 1024
const maxBatchBytes = 3 * 1024 * 1024
const batchEveryMs = 500
const firstBackoffMs = 500
const maxBackoffMs = 30_000
/** Idle time after which the connection is closed. */
const idleMs = 60_000

/** A kind of exported items, such as spans, and its encoding. */
export interface Signal<Item> {
  /** Path of requests over HTTP, if the policy has none. */
  readonly path: string
  /** Path of the gRPC method. */
  readonly method: string
  /** Returns the approximate size of an item when it is sent, in bytes. */
  sizeOf(item: Item): number
  encode(
    resource: readonly Attribute[],
    items: readonly Item[],
    scope: { readonly name: string; readonly version: string },
  ): Uint8Array
}

interface ExporterOptions<Item> {
  readonly signal: Signal<Item>
  readonly rules: ExportRules
  /** Resource attributes of the proxy and of the Gateway that the items belong to. */
  readonly resource: readonly Attribute[]
  readonly version: string
  /** Resolves the address of the collector. Rejects if that fails. */
  readonly resolve: () => Promise<CollectorAddress>
  readonly onExport: (sent: number, dropped: number) => void
}

interface WaitingItem<Item> {
  readonly item: Item
  readonly bytes: number
}

class Exporter<Item> {
  readonly #options: ExporterOptions<Item>
  readonly #resource: readonly Attribute[]
  readonly #sender: Sender
  #waiting: WaitingItem<Item>[] = []
  /** Size of what waits or is being sent. */
  #bytes = 0
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #backoffMs = 0

  constructor(options: ExporterOptions<Item>) {
    this.#options = options
    const { rules, resource, signal } = options
    const names = new Set(rules.resources.map(([name]) => name))
    this.#resource = [...resource.filter(([name]) => !names.has(name)), ...rules.resources]
    this.#sender =
      rules.protocol === 'GRPC'
        ? new GrpcSender(signal.method)
        : new HttpSender(rules.path ?? signal.path)
  }

  add(item: Item): void {
    const bytes = this.#options.signal.sizeOf(item)
    if (this.#waiting.length >= maxWaiting || this.#bytes + bytes > maxWaitingBytes) {
      this.#options.onExport(0, 1)
      return
    }
    const wasFull = this.#bytes >= maxBatchBytes
    this.#waiting.push({ item, bytes })
    this.#bytes += bytes
    if (this.#sending !== undefined) return
    const isFull = this.#waiting.length === maxBatch || (!wasFull && this.#bytes >= maxBatchBytes)
    if (isFull && this.#backoffMs === 0) this.#sendSoon(0)
    else if (this.#waiting.length === 1) this.#sendSoon(batchEveryMs)
  }

  /** Sends all waiting items once, without retries. Called before the process ends. */
  async flush(): Promise<void> {
    await this.#sending
    while (this.#waiting.length > 0) {
      if ((await this.#sendBatch()) === 'again') break
    }
    this.#options.onExport(0, this.#waiting.length)
    this.#waiting = []
    this.#bytes = 0
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

  #nextBatch(): WaitingItem<Item>[] {
    let bytes = 0
    const end = this.#waiting.findIndex((one, at) => {
      bytes += one.bytes
      return at === maxBatch || (at > 0 && bytes > maxBatchBytes)
    })
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : end)
  }

  /** Sends one batch. Never rejects. Items that can be sent again return to the front of the queue. */
  async #sendBatch(): Promise<SendResult> {
    const { signal, resolve, version, onExport } = this.#options
    const batch = this.#nextBatch()
    const bytes = batch.reduce((sum, one) => sum + one.bytes, 0)
    let result: SendResult
    try {
      const address = await resolve()
      result = await this.#sender.send(
        address,
        signal.encode(
          this.#resource,
          batch.map(({ item }) => item),
          { name: 'sluice', version },
        ),
      )
    } catch {
      // The collector cannot be resolved now, but that may change with its endpoints or policies.
      result = 'again'
    }
    // A collector may never accept an item that is too large, and others must not wait for it.
    if (result === 'again' && bytes <= maxBatchBytes) {
      const kept = batch.slice(0, maxWaiting - this.#waiting.length)
      this.#waiting.unshift(...kept)
      for (const one of batch.slice(kept.length)) this.#bytes -= one.bytes
      onExport(0, batch.length - kept.length)
      return result
    }
    this.#bytes -= bytes
    if (result === 'sent') onExport(batch.length, 0)
    else onExport(0, batch.length)
    return result
  }
}

/** A listener with its Gateway (`namespace/name`), whose policy exports the items. */
interface ObservedListener {
  readonly place: { readonly gateway: string }
}

interface ExportersOptions<Item, Listener> {
  readonly signal: Signal<Item>
  readonly version: string
  readonly resolve: (rules: ExportRules, listener: Listener) => Promise<CollectorAddress>
  readonly onExport: (sent: number, dropped: number) => void
}

/** Manages one exporter for each policy and Gateway. Unused exporters are garbage collected. */
export class Exporters<Item, Listener extends ObservedListener> {
  readonly #options: ExportersOptions<Item, Listener>
  readonly #byRules = new WeakMap<ExportRules, Map<string, Exporter<Item>>>()
  readonly #all = new Set<WeakRef<Exporter<Item>>>()

  constructor(options: ExportersOptions<Item, Listener>) {
    this.#options = options
  }

  add(rules: ExportRules, listener: Listener, items: readonly Item[]): void {
    const exporter = this.#of(rules, listener)
    for (const item of items) exporter.add(item)
  }

  /** Sends all waiting items. Called before the process ends. */
  async flush(): Promise<void> {
    await Promise.all([...this.#all].map((exporter) => exporter.deref()?.flush()))
  }

  #of(rules: ExportRules, listener: Listener): Exporter<Item> {
    const { gateway } = listener.place
    let exporters = this.#byRules.get(rules)
    if (exporters === undefined) {
      exporters = new Map()
      this.#byRules.set(rules, exporters)
    }
    let exporter = exporters.get(gateway)
    if (exporter === undefined) {
      const { signal, version, resolve, onExport } = this.#options
      exporter = new Exporter({
        signal,
        rules,
        version,
        onExport,
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
