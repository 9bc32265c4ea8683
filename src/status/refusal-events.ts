/**
 * Warnings on a Gateway whose proxies refuse configuration, where `kubectl describe` shows them. They
 * tell what has happened; what is so now stands in conditions.
 */
import { createHash } from 'node:crypto'
import type { ConfigRejectedData } from '../../events/index.ts'
import { controllerName, gatewayGroup } from '../api/names.ts'
import { systemClock } from '../base/clock.ts'
import { onlyChanges } from '../base/notices.ts'
import { type KubeClient, KubeError } from '../kube/index.ts'

interface RefusalEventsOptions {
  readonly client: Pick<KubeClient, 'apply'>
  /** Objects as the log knows them. */
  readonly index: { get(key: string): { readonly uid: string } | undefined }
  /** May this replica write now? What was in the log before it did is told already. */
  readonly isWriting: () => boolean
  readonly onNotice: (text: string) => void
  /** So long refusals are gathered. */
  readonly gatherMs?: number
}

/** Most proxies of a Gateway, and resources of a proxy, that are told of at once. */
const mostProxies = 8
const mostNamed = 4
/** Most characters of a message that Kubernetes takes. */
const mostText = 1024
/** Most events whose number of times is remembered. */
const mostRemembered = 1000

/** What is in force as far as the proxy knows it is not refused; the Gateway's condition names it. */
const partlyKnown = 'resource_partly_known'

export class RefusalEvents {
  readonly #options: RefusalEventsOptions
  /** Gateway, `namespace/name` -> proxy -> what it refuses. */
  #waiting = new Map<string, Map<string, Set<string>>>()
  readonly #told = new Map<string, { readonly first: string; readonly count: number }>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()
  /** Nothing depends on events: a problem with them is reported once. */
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
      this.#writing = this.#writing.then(() => this.#tell())
    }, this.#options.gatherMs ?? 500).unref()
  }

  /** What has not been told by now is not told any more. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#waiting.clear()
    await this.#writing
  }

  async #tell(): Promise<void> {
    this.#timer = undefined
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [gateway, proxies] of waiting) {
      for (const [proxy, texts] of [...proxies].slice(0, mostProxies)) {
        await this.#write(gateway, `proxy ${proxy} refuses ${listed([...texts])}`)
      }
    }
  }

  async #write(gateway: string, text: string): Promise<void> {
    const [namespace = '', name = ''] = gateway.split('/')
    const uid = this.#options.index.get(`Gateway/${gateway}`)?.uid
    if (uid === undefined) return
    const message = text.slice(0, mostText)
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

  /** One event tells how often something has happened, and when first and last. */
  #times(key: string) {
    const now = new Date(systemClock.now()).toISOString().replace(/\.\d+/, '')
    const { first, count } = this.#told.get(key) ?? { first: now, count: 0 }
    this.#told.delete(key)
    this.#told.set(key, { first, count: count + 1 })
    const [oldest] = this.#told.keys()
    if (this.#told.size > mostRemembered && oldest !== undefined) this.#told.delete(oldest)
    return { count: count + 1, firstTimestamp: first, lastTimestamp: now }
  }
}

function listed(texts: readonly string[]): string {
  const more = texts.length - mostNamed
  const named = texts.slice(0, mostNamed).join('; ')
  return more > 0 ? `${named}; and ${more} more` : named
}
