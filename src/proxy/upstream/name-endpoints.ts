/**
 * The addresses of a host name, as endpoints between which requests are spread, and as addresses to
 * which a connection is raced (RFC 8305). What connections have shown is remembered for a while, so
 * that an address or a family that leads nowhere is not waited for each time:
 *
 *   a race was lost ----> the slower address is no first choice for a minute, one that refused for
 *                   |     five seconds: to ask that one again costs nothing
 *                   `---> the family of the winner is first for ten minutes
 *
 * None of it is health: an endpoint to which connections are slow is still used where the better
 * ones are not.
 */
import { isIPv6 } from 'node:net'
import type {
  AddressRace,
  LosingAddresses,
  UpstreamAddress,
} from '../../engine/sockets/upstream-address.ts'
import type { EndpointSet } from './choose.ts'
import { addressText, plainAddress, UpstreamEndpoint } from './endpoint.ts'

/** Milliseconds; RFC 6555 4.2 remembers a family for "the order of 10 minutes". */
const familyMemoryMs = 600_000
const slowMemoryMs = 60_000
const failedMemoryMs = 5_000
/** Addresses that one connection is tried with beside the first. */
const mostRivals = 7

/** What races for one name and port have shown. */
interface RaceMemory {
  /** The family that is first until `familyUntil`, whatever DNS says. */
  family: 4 | 6
  familyUntil: number
  /** Address -> until when it is no first choice. */
  readonly beaten: Map<string, number>
}

export class NameEndpoints implements EndpointSet {
  readonly addresses: readonly string[]
  readonly all: readonly UpstreamEndpoint[]
  readonly #byHost = new Map<string, UpstreamEndpoint>()
  readonly #memory: RaceMemory
  readonly #now: () => number
  #preferred: readonly UpstreamEndpoint[]
  /** When `#preferred` may be another; Infinity where nothing is remembered. */
  #preferredUntil = 0

  /**
   * `addresses`: the first one says which family is tried first (RFC 6724); `before`: the set that
   * this one replaces, whose endpoints and memory go on. `now`: milliseconds that only go up.
   */
  constructor(
    addresses: readonly string[],
    port: number,
    before: NameEndpoints | undefined,
    now: () => number,
  ) {
    this.addresses = addresses
    this.#now = now
    this.#memory = before === undefined ? emptyMemory() : before.#memory
    const known = new Map(before?.all.map((endpoint) => [endpoint.address.pool, endpoint]))
    this.all = addresses.map(
      (address) =>
        known.get(addressText(address, port)) ?? new UpstreamEndpoint(plainAddress(address, port)),
    )
    for (const endpoint of this.all) this.#byHost.set(endpoint.address.host, endpoint)
    this.#preferred = this.all
  }

  /** Those of the better family to which connections were made at once. */
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
    const { familyUntil, family, beaten } = this.#memory
    const isRemembered = now < familyUntil
    for (const [host, until] of beaten) if (until <= now) beaten.delete(host)
    const first = isRemembered ? family : familyOf(this.addresses[0] ?? '')
    const isFirst = ({ address }: UpstreamEndpoint) => familyOf(address.host) === first
    const isQuick = ({ address }: UpstreamEndpoint) => !beaten.has(address.host)
    const groups = [
      this.all.filter((one) => isFirst(one) && isQuick(one)),
      this.all.filter(isQuick),
      this.all.filter(isFirst),
    ]
    this.#preferred = groups.find(({ length }) => length > 0) ?? this.all
    const ends = isRemembered ? [familyUntil, ...beaten.values()] : [...beaten.values()]
    this.#preferredUntil = Math.min(...ends)
  }

  /**
   * Families in turn, beginning with the other one (RFC 8305 4), and those last that are left out or
   * were beaten.
   */
  rivalsOf(host: string): readonly UpstreamEndpoint[] {
    if (this.all.length < 2) return noEndpoints
    const now = this.#now()
    const { beaten } = this.#memory
    const isLate = (one: UpstreamEndpoint) =>
      one.isEjected(this.#now) || (beaten.get(one.address.host) ?? 0) > now
    const others = this.all.filter(({ address }) => address.host !== host)
    const [late, good] = [others.filter(isLate), others.filter((one) => !isLate(one))]
    return [...inTurns(good, familyOf(host)), ...inTurns(late, familyOf(host))].slice(0, mostRivals)
  }

  /** Addresses: who won against whom. */
  won(winner: string, slow: readonly string[], failed: readonly string[]): void {
    const now = this.#now()
    const family = familyOf(winner)
    const memory = this.#memory
    memory.beaten.delete(winner)
    for (const host of slow) memory.beaten.set(host, now + slowMemoryMs)
    for (const host of failed) memory.beaten.set(host, now + failedMemoryMs)
    // Addresses may change and be no longer forgotten one by one.
    for (const host of memory.beaten.keys()) if (!this.#byHost.has(host)) memory.beaten.delete(host)
    if ([...slow, ...failed].some((host) => familyOf(host) !== family)) {
      memory.family = family
      memory.familyUntil = now + familyMemoryMs
    }
    this.#preferredUntil = 0
  }
}

const noEndpoints: readonly UpstreamEndpoint[] = []

function emptyMemory(): RaceMemory {
  return { family: 6, familyUntil: Number.NEGATIVE_INFINITY, beaten: new Map() }
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

/** One of each in turn, as long as there are both. */
export function interleave<Item>(first: readonly Item[], second: readonly Item[]): Item[] {
  const mixed: Item[] = []
  for (let at = 0; at < Math.max(first.length, second.length); at++) {
    mixed.push(...first.slice(at, at + 1), ...second.slice(at, at + 1))
  }
  return mixed
}

/** How an endpoint's plain address is connected to. */
type Reach = (plain: UpstreamAddress) => UpstreamAddress

/** A race between the addresses of a name, as they stood when it was resolved. */
export class NameRace implements AddressRace {
  readonly isPatient: boolean
  readonly #endpoints: NameEndpoints
  readonly #reach: Reach

  constructor(endpoints: NameEndpoints, reach: Reach, isPatient: boolean) {
    this.#endpoints = endpoints
    this.#reach = reach
    this.isPatient = isPatient
  }

  rivalsOf({ host }: UpstreamAddress): readonly UpstreamAddress[] {
    const rivals = this.#endpoints.rivalsOf(host)
    return rivals === noEndpoints ? noAddresses : rivals.map(({ address }) => this.#reach(address))
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
