/**
 * Resolves host names and caches their addresses for the TTL of DNS, within bounds:
 *
 *   within the TTL   addresses are used
 *   grace period     addresses are used while they are looked up again
 *   later            requests wait for the lookup; if it fails, the old addresses are used
 *
 * So requests rarely wait for DNS, unless the name is new.
 */
import { isIP } from 'node:net'
import { bareHost } from '../../../ground/base/bare-host.ts'
import { BoundedMap } from '../../../ground/base/bounded-map.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { ProxySettings } from '../../../ground/exchange/connection.ts'
import type { Lookup, Resolution } from './lookup.ts'
import { NameEndpoints } from './name-endpoints.ts'

const minTtlMs = 1_000
const maxTtlMs = 300_000
/** Grace period after the TTL, in which addresses are used while they are looked up again. */
const graceMs = 30_000
/** How long after the TTL the old addresses are used if lookups fail. */
const maxStaleMs = 3_600_000
const firstBackoffMs = 200
const maxBackoffMs = 5_000
/** Maximum number of cached names, because clients choose the names of dynamic destinations. */
const maxHosts = 10_000

interface HostEntry {
  addresses: readonly string[]
  freshUntil: number
  /** The running lookup, if there is one. */
  pending: Promise<readonly string[]> | undefined
  failures: number
  /** Earliest time of the next lookup; 0 after a successful one. */
  retryAt: number
  error: GatewayError | undefined
  /** The rest of the last lookup, if one family is late. */
  awaited?: Resolution['complete']
  readonly byPort: Map<number, NameEndpoints>
}

interface HostResolverOptions {
  readonly lookup: Lookup
  /** Returns the time of a monotonic clock, in milliseconds. */
  readonly now: () => number
  readonly onLookup?: (result: 'ok' | 'failed') => void
}

export class HostResolver {
  readonly #options: HostResolverOptions
  readonly #hosts = new BoundedMap<string, HostEntry>(maxHosts)
  readonly #unresolved = new BoundedMap<string, NameEndpoints>(maxHosts)

  constructor(options: HostResolverOptions) {
    this.#options = options
  }

  /**
   * Returns the addresses of a host in the order in which to try them. Throws or rejects with `dns_failed`.
   */
  addresses(host: string): readonly string[] | Promise<readonly string[]> {
    const entry = this.#entry(host)
    const now = this.#options.now()
    const age = now - entry.freshUntil
    if (entry.addresses.length > 0 && age < graceMs) {
      if (age >= 0 && now >= entry.retryAt) this.#lookUp(host, entry).catch(() => {})
      return entry.addresses
    }
    if (entry.pending === undefined && now < entry.retryAt) return this.#stale(host, entry, age)
    return this.#lookUp(host, entry).catch(() => this.#stale(host, entry, age))
  }

  /**
   * Returns the addresses of all families, although one may be answered late. Use it to check where a host leads.
   * Rejects with `dns_failed`.
   */
  async allAddresses(host: string): Promise<readonly string[]> {
    const addresses = await this.addresses(host)
    const complete = await this.#entry(host).awaited
    return complete === undefined ? addresses : complete.addresses
  }

  /** Like `addresses`, but returns endpoints, which keep their state when addresses change. */
  endpoints(host: string, port: number): NameEndpoints | Promise<NameEndpoints> {
    const addresses = this.addresses(host)
    if (addresses instanceof Promise) {
      return addresses.then((found) => this.#endpointsOf(host, port, found))
    }
    return this.#endpointsOf(host, port, addresses)
  }

  /**
   * Returns the endpoint of a name that a proxy resolves. Each proxy has a separate endpoint, because a failure at one
   * proxy says nothing about the connections of the others.
   */
  unresolved(proxy: ProxySettings, host: string, port: number): NameEndpoints {
    const key = `${proxy.identity} ${host}:${port}`
    let endpoints = this.#unresolved.get(key)
    if (endpoints === undefined) {
      endpoints = new NameEndpoints([host], port, undefined, this.#options.now, proxy)
      this.#unresolved.set(key, endpoints)
    }
    return endpoints
  }

  /** Looks up a host that will be needed soon. IP addresses need no lookup. */
  warm(host: string): void {
    if (isIP(bareHost(host)) !== 0) return
    const entry = this.#entry(host)
    if (entry.addresses.length === 0) this.#lookUp(host, entry).catch(() => {})
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
      this.#hosts.set(host, entry)
    }
    return entry
  }

  #lookUp(host: string, entry: HostEntry): Promise<readonly string[]> {
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

  #learn(entry: HostEntry, { addresses, ttlMs, complete }: Resolution): readonly string[] {
    if (addresses.length === 0) throw new Error('no addresses')
    entry.awaited = complete
    complete?.then((resolution) => {
      // A newer lookup may have been answered meanwhile.
      if (entry.awaited === complete) this.#learn(entry, resolution)
    })
    const isSame = addresses.join() === entry.addresses.join()
    if (!isSame) entry.addresses = addresses
    entry.freshUntil = this.#options.now() + Math.min(Math.max(ttlMs, minTtlMs), maxTtlMs)
    entry.failures = 0
    entry.retryAt = 0
    entry.error = undefined
    this.#options.onLookup?.('ok')
    return entry.addresses
  }

  #fail(host: string, entry: HostEntry, cause: unknown): never {
    const backoff = Math.min(firstBackoffMs * 2 ** entry.failures, maxBackoffMs)
    entry.failures++
    entry.retryAt = this.#options.now() + backoff
    entry.error = new GatewayError('dns_failed', host, cause)
    this.#options.onLookup?.('failed')
    throw entry.error
  }

  #stale(host: string, entry: HostEntry, age: number): readonly string[] {
    if (entry.addresses.length > 0 && age < maxStaleMs) return entry.addresses
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
