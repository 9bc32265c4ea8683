/**
 * Records the acknowledgements and rejections of proxies in the log. Acknowledgements are coalesced into a watermark per proxy
 * and appended at most every 250 ms, so that a burst of changes does not become a burst of events.
 */
import { randomUUID } from 'node:crypto'
import {
  configAcked,
  configRejected,
  type EventDefinition,
  proxyConnected,
  proxyDisconnected,
  type SluiceEvent,
} from '../../../events/index.ts'
import { systemClock } from '../../ground/base/clock.ts'
import type { ResourceKey } from '../../ground/model/resources.ts'
import { newEvent } from '../log/index.ts'

/** Receives acknowledgements and rejections. `sequence` is the log position of the configuration. */
export interface AckHandler {
  /** Called when configuration up to `sequence` is in force, and again when a rejection has ended. */
  onAck(proxy: string, sequence: number): void
  onReject(proxy: string, sequence: number, key: ResourceKey, code: string, message: string): void
  /** Called when a rejected resource is in force or was removed. */
  onRecover(proxy: string, sequence: number, key: ResourceKey): void
}

/** What a proxy states about itself when it connects. */
interface ProxyPresence {
  /** `namespace/name`. If omitted, the proxy serves every Gateway. */
  readonly gateway?: string
  /** Address on which it serves traffic. */
  readonly address?: string
  readonly version?: string
  /** Unique id of this connection. ProxyDelivery on other connections are ignored. */
  readonly stream?: string
}

/** Receives what proxies acknowledge and reject, and when they connect and disconnect. */
export interface ProxyReports extends AckHandler {
  connected(proxy: string, presence: ProxyPresence): void
  disconnected(proxy: string, reason: string): void
}

interface DeliveryRecorderOptions {
  /** The run of the replica that serves the proxies. If omitted, there is only one replica. */
  readonly replica?: string
  readonly append: (events: readonly SluiceEvent[]) => void
}

interface StandingRejection {
  readonly code: string
  readonly message: string
  readonly sequence: number
  recorded: boolean
}

/** Fields that all events about a proxy have. */
interface ProxyLocation extends Pick<ProxyPresence, 'gateway' | 'stream'> {
  readonly replica?: string
}

interface ProxyDelivery {
  readonly location: ProxyLocation
  /** Undefined if the proxy has not connected yet. */
  readonly presence: ProxyPresence | undefined
  watermark: number
  readonly refused: Map<ResourceKey, StandingRejection>
}

const flushIntervalMs = 250
const source = '/sluice/xds'

export class DeliveryRecorder implements ProxyReports {
  readonly #options: DeliveryRecorderOptions
  readonly #proxies = new Map<string, ProxyDelivery>()
  readonly #dirty = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #lastFlush = 0
  /** Part of event ids that is different in every run. */
  readonly #run = randomUUID()
  #count = 0

  constructor(options: DeliveryRecorderOptions) {
    this.#options = options
  }

  /** Called when a proxy has opened its stream. Its acknowledgements on an earlier stream are dropped. */
  connected(proxy: string, presence: ProxyPresence): void {
    const location = this.#locationOf(presence)
    this.#proxies.set(proxy, { location, presence, watermark: -1, refused: new Map() })
    this.#dirty.delete(proxy)
    const data = { proxy, ...presence, ...location }
    this.#options.append([this.#event(proxyConnected, data)])
  }

  /**
   * Called when a proxy was recorded as gone; `stream` is its stream in the log now, if it has one. If the
   * proxy is still connected here, records it as connected again, with all that it has acknowledged. Another replica may
   * have considered this one dead, or may have recorded an earlier stream of the proxy late.
   */
  reassert(proxy: string, stream: string | undefined): void {
    const delivery = this.#proxies.get(proxy)
    if (delivery?.presence === undefined || delivery.location.stream === stream) return
    const data = { proxy, ...delivery.presence, ...delivery.location }
    for (const standing of delivery.refused.values()) standing.recorded = false
    this.#options.append([this.#event(proxyConnected, data), ...this.#eventsOf(proxy, delivery)])
  }

  #locationOf({ gateway, stream }: ProxyPresence): ProxyLocation {
    return { gateway, stream, replica: this.#options.replica }
  }

  /** Appends the pending acknowledgements of the proxy, then its disconnection. */
  disconnected(proxy: string, reason: string): void {
    const delivery = this.#proxies.get(proxy)
    const last = this.#dirty.delete(proxy) && delivery ? this.#eventsOf(proxy, delivery) : []
    this.#proxies.delete(proxy)
    const data = { proxy, ...(delivery?.location ?? this.#locationOf({})), reason }
    const gone = this.#event(proxyDisconnected, data)
    this.#options.append([...last, gone])
  }

  onAck(proxy: string, sequence: number): void {
    const delivery = this.#deliveryOf(proxy)
    delivery.watermark = Math.max(delivery.watermark, sequence)
    this.#touch(proxy)
  }

  onReject(proxy: string, sequence: number, key: ResourceKey, code: string, message: string): void {
    const { refused } = this.#deliveryOf(proxy)
    const known = refused.get(key)
    const recorded = known?.recorded === true && known.message === message
    refused.set(key, { code, message, sequence, recorded })
    this.#touch(proxy)
  }

  onRecover(proxy: string, _sequence: number, key: ResourceKey): void {
    this.#deliveryOf(proxy).refused.delete(key)
    this.#touch(proxy)
  }

  /** Appends pending acknowledgements and stops. */
  close(): void {
    clearTimeout(this.#timer)
    this.#flush()
  }

  #deliveryOf(proxy: string): ProxyDelivery {
    const known = this.#proxies.get(proxy)
    if (known !== undefined) return known
    const location = this.#locationOf({})
    const fresh = { location, presence: undefined, watermark: -1, refused: new Map() }
    this.#proxies.set(proxy, fresh)
    return fresh
  }

  #touch(proxy: string): void {
    this.#dirty.add(proxy)
    if (this.#timer !== undefined) return
    // The clock may have been set back since the last flush.
    const left = this.#lastFlush + flushIntervalMs - systemClock.now()
    const wait = Math.min(Math.max(0, left), flushIntervalMs)
    this.#timer = setTimeout(() => this.#flush(), wait)
  }

  #flush(): void {
    this.#timer = undefined
    this.#lastFlush = systemClock.now()
    const events: SluiceEvent[] = []
    for (const proxy of this.#dirty) {
      const delivery = this.#proxies.get(proxy)
      if (delivery !== undefined) events.push(...this.#eventsOf(proxy, delivery))
    }
    this.#dirty.clear()
    if (events.length > 0) this.#options.append(events)
  }

  #eventsOf(proxy: string, { location, watermark, refused }: ProxyDelivery): SluiceEvent[] {
    const events: SluiceEvent[] = []
    for (const [key, standing] of refused) {
      if (standing.recorded) continue
      standing.recorded = true
      const { code, message, sequence } = standing
      const data = { proxy, ...location, sequence, key, code, message }
      events.push(this.#event(configRejected, data))
    }
    // Rejections come before the acknowledgement, which lists all rejected keys: a key that is not in the
    // list has recovered.
    if (watermark >= 0) {
      const data = {
        proxy,
        ...location,
        sequence: watermark,
        ...(refused.size > 0 && { refused: [...refused.keys()] }),
      }
      events.push(this.#event(configAcked, data))
    }
    return events
  }

  #event<Type extends SluiceEvent['type'], Data extends { readonly proxy: string }>(
    definition: EventDefinition<Type, Data>,
    data: Data,
  ): SluiceEvent {
    const id = `0:${this.#run}:${++this.#count}:delivery`
    const about = { kind: 'Proxy', name: data.proxy }
    return newEvent(definition, { source, epoch: 0 }, about, { id, data }) as SluiceEvent
  }
}
