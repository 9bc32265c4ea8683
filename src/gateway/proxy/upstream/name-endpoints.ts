/**
 * The addresses of a host name, as endpoints for requests and as competitors in a connection race (RFC 8305,
 * Happy Eyeballs). Results of races are remembered, so that connections do not wait for unreachable addresses
 * each time:
 *
 *   a race was lost ----> a slow address is not preferred for a minute, one that refused for five
 *                   |     seconds, because trying that again costs nothing
 *                   `---> the family of the winner is preferred for ten minutes
 *
 * These results do not affect health: addresses that are not preferred are used if the others cannot be.
 */
import { isIPv6 } from 'node:net'
import type {
  AddressRace,
  LosingAddresses,
  UpstreamAddress,
} from '../../../engines/http/sockets/upstream-address.ts'
import type { ProxySettings } from '../../../ground/exchange/connection.ts'
import type { EndpointSet } from './endpoint.ts'
import { addressText, plainAddress, UpstreamEndpoint } from './endpoint.ts'

/** How long a family is preferred. RFC 6555 4.2 suggests "the order of 10 minutes". */
const familyMemoryMs = 600_000
/** How long an address that was too slow is not preferred. */
const slowMemoryMs = 60_000
/** How long an address that refused connections is not preferred. */
const failedMemoryMs = 5_000
/** Maximum number of other addresses that one connection tries. */
const maxRivals = 7

/** Results of races for one name and port. */
interface HappyEyeballsCache {
  /** The family that is preferred until `familyUntil`. */
  family: 4 | 6
  familyUntil: number
  /** Addresses that lost a race, and until when they are not preferred. */
  readonly losersUntil: Map<string, number>
}

function proxiedAddress(address: UpstreamAddress, via: ProxySettings | undefined): UpstreamAddress {
  return via === undefined
    ? address
    : { ...address, pool: `${address.pool}|via ${via.identity}`, via }
}

export class NameEndpoints implements EndpointSet {
  readonly addresses: readonly string[]
  readonly all: readonly UpstreamEndpoint[]
  readonly #byHost = new Map<string, UpstreamEndpoint>()
  readonly #cache: HappyEyeballsCache
  readonly #now: () => number
  #preferred: readonly UpstreamEndpoint[]
  /** When `#preferred` must be computed again; Infinity if no race result is remembered. */
  #preferredUntil = 0

  /**
   * The family of the first of `addresses` is preferred (RFC 6724). `before` is the previous set, whose
   * endpoints and race results are kept. `now` is a monotonic clock, in milliseconds. With `proxy`, `addresses` has a
   * name that the proxy resolves.
   */
  constructor(
    addresses: readonly string[],
    port: number,
    before: NameEndpoints | undefined,
    now: () => number,
    proxy?: ProxySettings,
  ) {
    this.addresses = addresses
    this.#now = now
    this.#cache = before === undefined ? emptyCache() : before.#cache
    const known = new Map(before?.all.map((endpoint) => [endpoint.address.pool, endpoint]))
    this.all = addresses.map(
      (address) =>
        known.get(addressText(address, port)) ??
        new UpstreamEndpoint(proxiedAddress(plainAddress(address, port), proxy)),
    )
    for (const endpoint of this.all) this.#byHost.set(endpoint.address.host, endpoint)
    this.#preferred = this.all
  }

  /** Endpoints of the preferred family that did not lose a race recently. */
  get preferred(): readonly UpstreamEndpoint[] {
    if (this.#preferredUntil === Number.POSITIVE_INFINITY) return this.#preferred
    const now = this.#now()
    if (now >= this.#preferredUntil) this.#prefer(now)
    return this.#preferred
  }

  endpointAt(host: string): UpstreamEndpoint | undefined {
    return this.#byHost.get(host)
  }

  #prefer(now: number): void {
    const { familyUntil, family, losersUntil } = this.#cache
    const isRemembered = now < familyUntil
    for (const [host, until] of losersUntil) if (until <= now) losersUntil.delete(host)
    const first = isRemembered ? family : familyOf(this.addresses[0] ?? '')
    const isFirst = ({ address }: UpstreamEndpoint) => familyOf(address.host) === first
    const isQuick = ({ address }: UpstreamEndpoint) => !losersUntil.has(address.host)
    const groups = [
      this.all.filter((one) => isFirst(one) && isQuick(one)),
      this.all.filter(isQuick),
      this.all.filter(isFirst),
    ]
    this.#preferred = groups.find(({ length }) => length > 0) ?? this.all
    const ends = isRemembered ? [familyUntil, ...losersUntil.values()] : [...losersUntil.values()]
    this.#preferredUntil = Math.min(...ends)
  }

  /**
   * Returns the other addresses to try after `host`. Families alternate, beginning with the other one (RFC
   * 8305 4). Ejected addresses and losers of races come last.
   */
  rivalsOf(host: string): readonly UpstreamEndpoint[] {
    if (this.all.length < 2) return noEndpoints
    const now = this.#now()
    const { losersUntil } = this.#cache
    const isLate = (one: UpstreamEndpoint) =>
      one.isEjected(this.#now) || (losersUntil.get(one.address.host) ?? 0) > now
    const others = this.all.filter(({ address }) => address.host !== host)
    const [late, good] = [others.filter(isLate), others.filter((one) => !isLate(one))]
    return [...inTurns(good, familyOf(host)), ...inTurns(late, familyOf(host))].slice(0, maxRivals)
  }

  /** Remembers the result of a race. All parameters are addresses. */
  won(winner: string, slow: readonly string[], failed: readonly string[]): void {
    const now = this.#now()
    const family = familyOf(winner)
    const cache = this.#cache
    cache.losersUntil.delete(winner)
    for (const host of slow) cache.losersUntil.set(host, now + slowMemoryMs)
    for (const host of failed) cache.losersUntil.set(host, now + failedMemoryMs)
    // Removes addresses that the name no longer has.
    for (const host of cache.losersUntil.keys())
      if (!this.#byHost.has(host)) cache.losersUntil.delete(host)
    if ([...slow, ...failed].some((host) => familyOf(host) !== family)) {
      cache.family = family
      cache.familyUntil = now + familyMemoryMs
    }
    this.#preferredUntil = 0
  }
}

const noEndpoints: readonly UpstreamEndpoint[] = []

function emptyCache(): HappyEyeballsCache {
  return { family: 6, familyUntil: Number.NEGATIVE_INFINITY, losersUntil: new Map() }
}

function familyOf(address: string): 4 | 6 {
  return isIPv6(address) ? 6 : 4
}

function inTurns(endpoints: readonly UpstreamEndpoint[], after: 4 | 6): UpstreamEndpoint[] {
  const isSame = ({ address }: UpstreamEndpoint) => familyOf(address.host) === after
  const same = endpoints.filter(isSame)
  const other = endpoints.filter((one) => !isSame(one))
  return interleave(other, same)
}

/** Joins two lists by taking an item of each in turn. */
export function interleave<Item>(first: readonly Item[], second: readonly Item[]): Item[] {
  const mixed: Item[] = []
  for (let at = 0; at < Math.max(first.length, second.length); at++) {
    mixed.push(...first.slice(at, at + 1), ...second.slice(at, at + 1))
  }
  return mixed
}

/** Adds connection settings to a plain address. */
type ApplySettings = (plain: UpstreamAddress) => UpstreamAddress

/** A race between the addresses that a name had when it was resolved. */
export class NameRace implements AddressRace {
  readonly isPatient: boolean
  readonly #endpoints: NameEndpoints
  readonly #applySettings: ApplySettings

  constructor(endpoints: NameEndpoints, applySettings: ApplySettings, isPatient: boolean) {
    this.#endpoints = endpoints
    this.#applySettings = applySettings
    this.isPatient = isPatient
  }

  rivalsOf({ host }: UpstreamAddress): readonly UpstreamAddress[] {
    const rivals = this.#endpoints.rivalsOf(host)
    return rivals === noEndpoints
      ? noAddresses
      : rivals.map(({ address }) => this.#applySettings(address))
  }

  won(winner: UpstreamAddress, { slow, failed }: LosingAddresses): void {
    this.#endpoints.won(winner.host, slow.map(hostOf), failed.map(hostOf))
  }

  endpointAt({ host }: UpstreamAddress): UpstreamEndpoint | undefined {
    return this.#endpoints.endpointAt(host)
  }
}

const hostOf = ({ host }: UpstreamAddress): string => host

const noAddresses: readonly UpstreamAddress[] = []
