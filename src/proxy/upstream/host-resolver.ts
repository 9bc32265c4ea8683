/**
 * Addresses behind host names, kept for as long as DNS says, within bounds:
 *
 *   fresh     used as they are
 *   just old  used once more, while they are looked up again beside the request
 *   old       the request waits for the lookup; where that fails the old addresses are used on
 *
 * So a request waits for DNS when a name is new, and hardly ever again.
 */
import { isIP } from 'node:net'
import { bareHost } from '../../base/bare-host.ts'
import { GatewayError } from '../../errors/index.ts'
import type { Lookup, Resolution } from './lookup.ts'
import { NameEndpoints } from './name-endpoints.ts'

const shortestMs = 1_000
const longestMs = 300_000
/** After its time an answer serves so much longer, while the next one is fetched. */
const graceMs = 30_000
/** How long old addresses stand in for a resolver that fails. */
const longestStaleMs = 3_600_000
const firstBackoffMs = 200
const longestBackoffMs = 5_000
/** Clients choose names of dynamic destinations. */
const mostHosts = 10_000

interface HostEntry {
  addresses: readonly string[]
  freshUntil: number
  /** Set while a lookup is under way. */
  pending: Promise<readonly string[]> | undefined
  failures: number
  /** Not asked again before; 0 where the last lookup went well. */
  retryAt: number
  error: GatewayError | undefined
  readonly byPort: Map<number, NameEndpoints>
}

interface HostResolverOptions {
  readonly lookup: Lookup
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
  readonly onLookup?: (result: 'ok' | 'failed') => void
}

export class HostResolver {
  readonly #options: HostResolverOptions
  readonly #hosts = new Map<string, HostEntry>()

  constructor(options: HostResolverOptions) {
    this.#options = options
  }

  /** In the order in which they are to be tried. Throws or rejects with `dns_failed`. */
  addresses(host: string): readonly string[] | Promise<readonly string[]> {
    const entry = this.#entry(host)
    const now = this.#options.now()
    const age = now - entry.freshUntil
    if (entry.addresses.length > 0 && age < graceMs) {
      if (age >= 0 && now >= entry.retryAt) this.#look(host, entry).catch(() => {})
      return entry.addresses
    }
    if (entry.pending === undefined && now < entry.retryAt) return this.#stale(host, entry, age)
    return this.#look(host, entry).catch(() => this.#stale(host, entry, age))
  }

  /** The same as endpoints, which keep what was learned of them while addresses come and go. */
  endpoints(host: string, port: number): NameEndpoints | Promise<NameEndpoints> {
    const addresses = this.addresses(host)
    if (addresses instanceof Promise) {
      return addresses.then((found) => this.#endpointsOf(host, port, found))
    }
    return this.#endpointsOf(host, port, addresses)
  }

  /** Resolves a host that will be needed soon. IP addresses need no lookup. */
  warm(host: string): void {
    if (isIP(bareHost(host)) !== 0) return
    const entry = this.#entry(host)
    if (entry.addresses.length === 0) this.#look(host, entry).catch(() => {})
  }

  #entry(host: string): HostEntry {
    let entry = this.#hosts.get(host)
    if (entry === undefined) {
      entry = {
        addresses: [],
        freshUntil: 0,
        pending: undefined,
        failures: 0,
        retryAt: 0,
        error: undefined,
        byPort: new Map(),
      }
      // The one that was asked for first, in a Map's order, is as good as any to forget.
      const [oldest] = this.#hosts.size >= mostHosts ? this.#hosts.keys() : []
      if (oldest !== undefined) this.#hosts.delete(oldest)
      this.#hosts.set(host, entry)
    }
    return entry
  }

  #look(host: string, entry: HostEntry): Promise<readonly string[]> {
    entry.pending ??= this.#options
      .lookup(host)
      .then(
        (resolution) => this.#learn(entry, resolution),
        (cause: unknown) => this.#fail(host, entry, cause),
      )
      .finally(() => {
        entry.pending = undefined
      })
    return entry.pending
  }

  #learn(entry: HostEntry, { addresses, ttlMs }: Resolution): readonly string[] {
    if (addresses.length === 0) throw new Error('no addresses')
    const isSame = addresses.join() === entry.addresses.join()
    if (!isSame) entry.addresses = addresses
    entry.freshUntil = this.#options.now() + Math.min(Math.max(ttlMs, shortestMs), longestMs)
    entry.failures = 0
    entry.retryAt = 0
    entry.error = undefined
    this.#options.onLookup?.('ok')
    return entry.addresses
  }

  #fail(host: string, entry: HostEntry, cause: unknown): never {
    const backoff = Math.min(firstBackoffMs * 2 ** entry.failures, longestBackoffMs)
    entry.failures++
    entry.retryAt = this.#options.now() + backoff
    entry.error = new GatewayError('dns_failed', host, cause)
    this.#options.onLookup?.('failed')
    throw entry.error
  }

  #stale(host: string, entry: HostEntry, age: number): readonly string[] {
    if (entry.addresses.length > 0 && age < longestStaleMs) return entry.addresses
    throw new GatewayError('dns_failed', host, entry.error?.cause)
  }

  #endpointsOf(host: string, port: number, addresses: readonly string[]): NameEndpoints {
    const { byPort } = this.#entry(host)
    const known = byPort.get(port)
    if (known !== undefined && known.addresses === addresses) return known
    const fresh = new NameEndpoints(addresses, port, known, this.#options.now)
    byPort.set(port, fresh)
    return fresh
  }
}
