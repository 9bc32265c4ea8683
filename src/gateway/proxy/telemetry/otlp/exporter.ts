/**
 * Sends spans, entries of the access log and decision records to collectors in batches. If a collector is slow, they are dropped, so
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

/** Maximum number of items that wait for one collector, and that are sent at once. */
const defaultLimits: BatchLimits = { maxWaiting: 2_048, maxBatch: 512, everyMs: 500 }
/** The same in bytes. Collectors accept 4 MiB over gRPC by default. */
const maxWaitingBytes = 16 * 1024 * 1024
const maxBatchBytes = 3 * 1024 * 1024
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
    isJson?: boolean,
  ): Uint8Array
}

export interface BatchLimits {
  readonly maxWaiting: number
  readonly maxBatch: number
  /** How long the first item of a batch waits for others. */
  readonly everyMs: number
}

interface ExporterOptions<Item> {
  readonly signal: Signal<Item>
  readonly limits?: BatchLimits
  /** JSON instead of protobuf. */
  readonly isJson?: boolean
  /** Resource attributes of the proxy. */
  readonly resource: readonly Attribute[]
  readonly version: string
  /** Sends a batch. If it rejects, the batch is sent again. */
  readonly send: (body: Uint8Array) => Promise<SendResult>
  /** Closes the connection. The next batch may open another one. */
  readonly disconnect: () => void
  readonly onExport: (sent: number, dropped: number) => void
}

interface WaitingItem<Item> {
  readonly item: Item
  readonly bytes: number
}

export class Exporter<Item> {
  readonly #options: ExporterOptions<Item>
  readonly #limits: BatchLimits
  #waiting: WaitingItem<Item>[] = []
  /** Size of what waits or is being sent. */
  #bytes = 0
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #backoffMs = 0

  constructor(options: ExporterOptions<Item>) {
    this.#options = options
    this.#limits = options.limits ?? defaultLimits
  }

  add(item: Item): void {
    const bytes = this.#options.signal.sizeOf(item)
    const { maxWaiting, maxBatch, everyMs } = this.#limits
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
    else if (this.#waiting.length === 1) this.#sendSoon(everyMs)
  }

  /** Sends all waiting items once, without retries. Called before the process ends. */
  async flush(): Promise<void> {
    await this.#sending
    while (this.#waiting.length > 0) {
      if ((await this.#sendBatch()).result === 'again') break
    }
    this.#options.onExport(0, this.#waiting.length)
    this.#waiting = []
    this.#bytes = 0
    clearTimeout(this.#timer)
    this.#options.disconnect()
  }

  #sendSoon(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#send(), delayMs)
    this.#timer.unref()
  }

  #send(): void {
    this.#sending = this.#sendBatch().then(({ result, afterMs = 0 }) => {
      this.#sending = undefined
      const doubled = Math.max(this.#backoffMs * 2, firstBackoffMs)
      this.#backoffMs = result === 'again' ? Math.min(Math.max(doubled, afterMs), maxBackoffMs) : 0
      const { everyMs, maxBatch } = this.#limits
      const isFull = this.#waiting.length >= maxBatch || this.#bytes >= maxBatchBytes
      if (this.#waiting.length > 0) this.#sendSoon(this.#backoffMs || (isFull ? 0 : everyMs))
      else this.#closeWhenIdle()
    })
  }

  #closeWhenIdle(): void {
    this.#timer = setTimeout(() => this.#options.disconnect(), idleMs)
    this.#timer.unref()
  }

  #nextBatch(): WaitingItem<Item>[] {
    const { maxBatch } = this.#limits
    let bytes = 0
    const end = this.#waiting.findIndex((one, at) => {
      bytes += one.bytes
      return at === maxBatch || (at > 0 && bytes > maxBatchBytes)
    })
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : end)
  }

  /** Sends one batch. Never rejects. Items that can be sent again return to the front of the queue. */
  async #sendBatch(): Promise<SendResult> {
    const { signal, resource, version, isJson = false, send, onExport } = this.#options
    const batch = this.#nextBatch()
    const bytes = batch.reduce((sum, one) => sum + one.bytes, 0)
    const items = batch.map(({ item }) => item)
    let sent: SendResult
    try {
      sent = await send(signal.encode(resource, items, { name: 'sluice', version }, isJson))
    } catch {
      // The collector cannot be resolved now, but that may change with its endpoints or policies.
      sent = { result: 'again' }
    }
    const { result, rejected = 0 } = sent
    // A collector may never accept an item that is too large, and others must not wait for it.
    if (result === 'again' && bytes <= maxBatchBytes) {
      const kept = batch.slice(0, this.#limits.maxWaiting - this.#waiting.length)
      this.#waiting.unshift(...kept)
      for (const one of batch.slice(kept.length)) this.#bytes -= one.bytes
      onExport(0, batch.length - kept.length)
      return sent
    }
    this.#bytes -= bytes
    const lost = result === 'sent' ? Math.min(rejected, batch.length) : batch.length
    onExport(batch.length - lost, lost)
    return sent
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
      const sender = senderFor(rules, signal)
      exporter = new Exporter({
        signal,
        version,
        onExport,
        resource: resourceOf(rules, gateway, version),
        send: async (body) => sender.send(await resolve(rules, listener), body),
        disconnect: () => sender.close(),
      })
      exporters.set(gateway, exporter)
      for (const known of this.#all) if (known.deref() === undefined) this.#all.delete(known)
      this.#all.add(new WeakRef(exporter))
    }
    return exporter
  }
}

function senderFor<Item>({ protocol, path }: ExportRules, signal: Signal<Item>): Sender {
  return protocol === 'GRPC' ? new GrpcSender(signal.method) : new HttpSender(path ?? signal.path)
}

/** Returns the resource attributes of a proxy for a Gateway. Those of the policy replace the default ones. */
function resourceOf({ resources }: ExportRules, gateway: string, version: string): Attribute[] {
  const slash = gateway.indexOf('/')
  const byDefault: Attribute[] = [
    ['service.name', gateway.slice(slash + 1)],
    ['service.namespace', gateway.slice(0, slash)],
    ['service.version', version],
    ['service.instance.id', process.env.POD_NAME ?? `${hostname()}-${process.pid}`],
    ['host.name', hostname()],
  ]
  const names = new Set(resources.map(([name]) => name))
  return [...byDefault.filter(([name]) => !names.has(name)), ...resources]
}
