/**
 * Writes warning events about Gateways whose proxies reject configuration. `kubectl describe` shows them.
 * Events report what has happened; conditions report the current state.
 */
import { createHash } from 'node:crypto'
import type { ConfigRejectedData } from '../../events/index.ts'
import { controllerName, gatewayGroup } from '../api/names.ts'
import { systemClock } from '../base/clock.ts'
import { onlyChanges } from '../base/notices.ts'
import { type KubeClient, KubeError } from '../kube/index.ts'

interface RefusalEventsOptions {
  readonly client: Pick<KubeClient, 'apply'>
  /** Objects in the log. */
  readonly index: { get(key: string): { readonly uid: string } | undefined }
  /** Whether this replica may write now. If not, another replica reports the rejections. */
  readonly isWriting: () => boolean
  readonly onNotice: (text: string) => void
}

/** How long rejections are gathered before events are written. */
const gatherMs = 500
/** Maximum number of proxies of one Gateway that are reported at once. */
const maxProxies = 8
/** Maximum number of rejections that the event about one proxy lists. */
const maxListed = 4
/** Longest message that Kubernetes accepts. */
const maxMessageLength = 1024
/** Maximum number of events whose count is remembered. */
const maxRemembered = 1000

/** Code of resources that are in force, except for parts that the proxy does not know; not reported here. */
const partlyKnown = 'resource_partly_known'

export class RefusalEvents {
  readonly #options: RefusalEventsOptions
  /** Rejections that are not reported yet: Gateway, `namespace/name` -> proxy -> texts. */
  #waiting = new Map<string, Map<string, Set<string>>>()
  readonly #written = new Map<string, { readonly first: string; readonly count: number }>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()
  /** Reports a problem with writing events, and only once, since nothing depends on events. */
  readonly #report: (problem: string) => void

  constructor(options: RefusalEventsOptions) {
    this.#options = options
    this.#report = onlyChanges(options.onNotice)
  }

  add({ gateway, proxy, key, code, message }: ConfigRejectedData): void {
    if (gateway === undefined || code === partlyKnown || !this.#options.isWriting()) return
    const proxies = this.#waiting.get(gateway) ?? new Map<string, Set<string>>()
    const texts = proxies.get(proxy) ?? new Set<string>()
    this.#waiting.set(gateway, proxies.set(proxy, texts))
    texts.add(`${key}: ${message}`)
    this.#timer ??= setTimeout(() => {
      this.#writing = this.#writing.then(() => this.#writeAll())
    }, gatherMs).unref()
  }

  /** Drops rejections that are not reported yet. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#waiting.clear()
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    this.#timer = undefined
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [gateway, proxies] of waiting) {
      for (const [proxy, texts] of [...proxies].slice(0, maxProxies)) {
        await this.#write(gateway, `proxy ${proxy} refuses ${listed([...texts])}`)
      }
    }
  }

  async #write(gateway: string, text: string): Promise<void> {
    const [namespace = '', name = ''] = gateway.split('/')
    const uid = this.#options.index.get(`Gateway/${gateway}`)?.uid
    if (uid === undefined) return
    const message = text.slice(0, maxMessageLength)
    const hash = createHash('sha256').update(`${uid}\0${message}`).digest('hex').slice(0, 16)
    const event = `${name.slice(0, 236)}.${hash}`
    try {
      await this.#options.client.apply(`/api/v1/namespaces/${namespace}/events/${event}`, {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: event, namespace },
        involvedObject: {
          apiVersion: `${gatewayGroup}/v1`,
          kind: 'Gateway',
          ...{ namespace, name, uid },
        },
        type: 'Warning',
        reason: 'GatewayNack',
        message,
        source: { component: controllerName },
        reportingComponent: controllerName,
        ...this.#times(`${namespace}/${event}`),
      })
      this.#report('')
    } catch (error) {
      const problem = error instanceof KubeError ? error.message : String(error)
      this.#report(`events about refused configuration cannot be written: ${problem}`)
    }
  }

  /** Returns the count of an event, and when it happened first and last. */
  #times(key: string) {
    const now = new Date(systemClock.now()).toISOString().replace(/\.\d+/, '')
    const { first, count } = this.#written.get(key) ?? { first: now, count: 0 }
    this.#written.delete(key)
    this.#written.set(key, { first, count: count + 1 })
    const [oldest] = this.#written.keys()
    if (this.#written.size > maxRemembered && oldest !== undefined) this.#written.delete(oldest)
    return { count: count + 1, firstTimestamp: first, lastTimestamp: now }
  }
}

function listed(texts: readonly string[]): string {
  const more = texts.length - maxListed
  const named = texts.slice(0, maxListed).join('; ')
  return more > 0 ? `${named}; and ${more} more` : named
}
