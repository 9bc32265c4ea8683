/**
 * Records warning events about Gateways whose proxies reject configuration.
 * Events report what has happened; conditions report the current state.
 */
import type { ConfigRejectedData } from '../../../events/index.ts'
import { gatewayGroup } from '../../ground/model/api-names.ts'
import type { EventRecorder } from './event-recorder.ts'

interface RefusalEventsOptions {
  readonly recorder: Pick<EventRecorder, 'record'>
  /** Objects in the log. */
  readonly index: { get(key: string): { readonly uid: string } | undefined }
  /** Whether this replica may write now. If not, another replica reports the rejections. */
  readonly isWriting: () => boolean
}

/** How long rejections are gathered before events are written. */
const gatherMs = 500
/** Maximum number of proxies of one Gateway that are reported at once. */
const maxProxies = 8
/** Maximum number of rejections that the event about one proxy lists. */
const maxListed = 4
/** Code of resources that are in force, except for parts that the proxy does not know; not reported here. */
const partlyKnown = 'resource_partly_known'

export class RefusalEvents {
  readonly #options: RefusalEventsOptions
  /** Rejections that are not reported yet: Gateway, `namespace/name` -> proxy -> texts. */
  #waiting = new Map<string, Map<string, Set<string>>>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: RefusalEventsOptions) {
    this.#options = options
  }

  add({ gateway, proxy, key, code, message }: ConfigRejectedData): void {
    if (gateway === undefined || code === partlyKnown || !this.#options.isWriting()) return
    const proxies = this.#waiting.get(gateway) ?? new Map<string, Set<string>>()
    const texts = proxies.get(proxy) ?? new Set<string>()
    this.#waiting.set(gateway, proxies.set(proxy, texts))
    texts.add(`${key}: ${message}`)
    this.#timer ??= setTimeout(() => this.#recordAll(), gatherMs).unref()
  }

  /** Drops rejections that are not reported yet. */
  close(): void {
    clearTimeout(this.#timer)
    this.#waiting.clear()
  }

  #recordAll(): void {
    this.#timer = undefined
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [gateway, proxies] of waiting) {
      for (const [proxy, texts] of [...proxies].slice(0, maxProxies)) {
        this.#record(gateway, `proxy ${proxy} refuses ${listed([...texts])}`)
      }
    }
  }

  #record(gateway: string, note: string): void {
    const [namespace = '', name = ''] = gateway.split('/')
    const uid = this.#options.index.get(`Gateway/${gateway}`)?.uid
    if (uid === undefined) return
    this.#options.recorder.record({
      regarding: { apiVersion: `${gatewayGroup}/v1`, kind: 'Gateway', namespace, name, uid },
      type: 'Warning',
      action: 'Configure',
      reason: 'GatewayNack',
      note,
    })
  }
}

function listed(texts: readonly string[]): string {
  const more = texts.length - maxListed
  const named = texts.slice(0, maxListed).join('; ')
  return more > 0 ? `${named}; and ${more} more` : named
}
