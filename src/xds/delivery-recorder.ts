/**
 * Proxies' answers into the log. Acknowledgements are coalesced into a watermark per proxy and
 * appended at once after a quiet time, else at most every 250 ms, so that a burst of changes does
 * not become a burst of events.
 */
import {
  configAcked,
  configRejected,
  createEvent,
  type EventContext,
  proxyConnected,
  proxyDisconnected,
  type SluiceEvent,
} from '../../events/index.ts'
import type { Clock } from '../base/clock.ts'
import { subjectOf } from '../log/index.ts'
import type { ResourceKey } from '../model/resources.ts'
import type { ProxyAnswers, ProxyPresence } from './answers.ts'

interface DeliveryRecorderOptions {
  readonly clock: Clock
  readonly cluster: string
  /** Unique for this run of the process, so that events of two runs never share an id. */
  readonly run: string
  /** Which run of which replica serves the proxies; absent where there is only one. */
  readonly replica?: string
  readonly append: (events: readonly SluiceEvent[]) => void
}

interface StandingRejection {
  readonly code: string
  readonly message: string
  readonly sequence: number
  recorded: boolean
}

/** What every event about a proxy repeats. */
interface Place extends Pick<ProxyPresence, 'gateway' | 'stream'> {
  readonly replica?: string
}

interface Answers {
  readonly place: Place
  /** Undefined if the proxy has not connected yet. */
  readonly presence: ProxyPresence | undefined
  watermark: number
  readonly refused: Map<ResourceKey, StandingRejection>
}

const quietMs = 250
const source = '/sluice/xds'

export class DeliveryRecorder implements ProxyAnswers {
  readonly #options: DeliveryRecorderOptions
  readonly #proxies = new Map<string, Answers>()
  readonly #dirty = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #lastFlush = 0
  #count = 0

  constructor(options: DeliveryRecorderOptions) {
    this.#options = options
  }

  /** A proxy has opened its stream: what it said before on another one is forgotten. */
  connected(proxy: string, presence: ProxyPresence): void {
    const place = this.#placeOf(presence)
    this.#proxies.set(proxy, { place, presence, watermark: -1, refused: new Map() })
    this.#dirty.delete(proxy)
    const data = { proxy, ...presence, ...place }
    this.#append([createEvent(proxyConnected, this.#context(), this.#content(proxy, data))])
  }

  /**
   * Another replica took this one for dead and recorded the proxy as gone. If the proxy is still here
   * on that connection, appends that it is, with everything that it has answered.
   */
  reassert(proxy: string, stream: string | undefined): void {
    const answers = this.#proxies.get(proxy)
    if (answers?.presence === undefined || answers.place.stream !== stream) return
    const data = { proxy, ...answers.presence, ...answers.place }
    for (const standing of answers.refused.values()) standing.recorded = false
    this.#append([
      createEvent(proxyConnected, this.#context(), this.#content(proxy, data)),
      ...this.#eventsOf(proxy, answers),
    ])
  }

  #placeOf({ gateway, stream }: ProxyPresence): Place {
    const { replica } = this.#options
    return {
      ...(gateway !== undefined && { gateway }),
      ...(stream !== undefined && { stream }),
      ...(replica !== undefined && { replica }),
    }
  }

  /** Appends what is pending of the proxy, then that it has gone. */
  disconnected(proxy: string, reason: string): void {
    const answers = this.#proxies.get(proxy)
    const last = this.#dirty.delete(proxy) && answers ? this.#eventsOf(proxy, answers) : []
    this.#proxies.delete(proxy)
    const data = { proxy, ...(answers?.place ?? this.#placeOf({})), reason }
    const gone = createEvent(proxyDisconnected, this.#context(), this.#content(proxy, data))
    this.#append([...last, gone])
  }

  onAck(proxy: string, sequence: number): void {
    const answers = this.#answersOf(proxy)
    answers.watermark = Math.max(answers.watermark, sequence)
    this.#touch(proxy)
  }

  onReject(proxy: string, sequence: number, key: ResourceKey, code: string, message: string): void {
    const { refused } = this.#answersOf(proxy)
    const known = refused.get(key)
    const recorded = known?.recorded === true && known.message === message
    refused.set(key, { code, message, sequence, recorded })
    this.#touch(proxy)
  }

  onRecover(proxy: string, _sequence: number, key: ResourceKey): void {
    this.#answersOf(proxy).refused.delete(key)
    this.#touch(proxy)
  }

  /** Appends what is pending and stops. */
  close(): void {
    clearTimeout(this.#timer)
    this.#flush()
  }

  #answersOf(proxy: string): Answers {
    const known = this.#proxies.get(proxy)
    if (known !== undefined) return known
    const place = this.#placeOf({})
    const fresh = { place, presence: undefined, watermark: -1, refused: new Map() }
    this.#proxies.set(proxy, fresh)
    return fresh
  }

  #touch(proxy: string): void {
    this.#dirty.add(proxy)
    if (this.#timer !== undefined) return
    const wait = Math.max(0, this.#lastFlush + quietMs - this.#options.clock.now())
    this.#timer = setTimeout(() => this.#flush(), wait)
  }

  #flush(): void {
    this.#timer = undefined
    this.#lastFlush = this.#options.clock.now()
    const events: SluiceEvent[] = []
    for (const proxy of this.#dirty) {
      const answers = this.#proxies.get(proxy)
      if (answers !== undefined) events.push(...this.#eventsOf(proxy, answers))
    }
    this.#dirty.clear()
    if (events.length > 0) this.#append(events)
  }

  #eventsOf(proxy: string, { place, watermark, refused }: Answers): SluiceEvent[] {
    const context = this.#context()
    const events: SluiceEvent[] = []
    for (const [key, standing] of refused) {
      if (standing.recorded) continue
      standing.recorded = true
      const { code, message, sequence } = standing
      const data = { proxy, ...place, sequence, key, code, message }
      events.push(createEvent(configRejected, context, this.#content(proxy, data)))
    }
    // A rejection after the acknowledgement that it belongs to would count as recovered, so it
    // stands before; a recovery shows as an acknowledgement that no longer names the key.
    if (watermark >= 0) {
      const data = {
        proxy,
        ...place,
        sequence: watermark,
        ...(refused.size > 0 && { refused: [...refused.keys()] }),
      }
      events.push(createEvent(configAcked, context, this.#content(proxy, data)))
    }
    return events
  }

  #content<Data>(proxy: string, data: Data) {
    const { cluster, run } = this.#options
    return {
      id: `0:${run}:${++this.#count}:delivery`,
      subject: subjectOf({ cluster, kind: 'Proxy', namespace: '', name: proxy }),
      data,
    }
  }

  #context(): EventContext {
    return { source, time: new Date(this.#options.clock.now()).toISOString(), epoch: 0 }
  }

  #append(events: readonly SluiceEvent[]): void {
    this.#options.append(events)
  }
}
