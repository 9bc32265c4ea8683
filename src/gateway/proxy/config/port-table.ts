/**
 * The listeners and routes of one port. In the route table of the core, each listener is a scope, and each
 * match of each rule on a listener is an entry. The ids in the core refer to the entries here.
 */

import { exactList } from '../../../control/wire/repeated.ts'
import type { RouteSpec } from '../../../engines/core/route-spec.ts'
import type { RouteTable } from '../../../engines/core/route-table.ts'
import type { Outcome } from '../../../ground/base/outcome.ts'
import { compareText } from '../../../ground/model/names.ts'
import type {
  ListenerResource,
  NamedMatch,
  PathMatch,
  ResourceKey,
  RouteMatch,
} from '../../../ground/model/resources.ts'
import { ListenerPlacement, RulePlacement } from './placement.ts'
import type { PolicyIndex } from './policies.ts'
import type { CompiledRule } from './rules.ts'

export interface RouteEntry {
  readonly placement: RulePlacement
  /** The matched PathPrefix; undefined if the path is matched in another way. */
  readonly prefix: string | undefined
  /** Path of the session cookie; undefined if the rule has no session persistence. */
  readonly cookiePath: string | undefined
}

/** Values by id. Freed ids are reused, so that ids stay small. */
class Slots<Value> {
  readonly #values: (Value | undefined)[] = []
  readonly #free: number[] = []
  #next = 0

  get(id: number): Value | undefined {
    return this.#values[id]
  }

  reserve(): number {
    return this.#free.pop() ?? this.#next++
  }

  set(id: number, value: Value): void {
    this.#values[id] = value
  }

  drop(id: number): void {
    this.#values[id] = undefined
    this.#free.push(id)
  }
}

/** Ids of the entries of one rule on one listener. */
type EntryIds = readonly number[]

export class PortTable {
  readonly routes: RouteTable
  readonly #policies: PolicyIndex
  readonly #listeners = new Slots<ListenerPlacement>()
  readonly #entries = new Slots<RouteEntry>()
  /** All listeners with a hostname, sorted by key. Only the first one is served. */
  readonly #claims = new Map<string, ListenerResource[]>()
  /** The served listener of each hostname. */
  readonly #serving = new Map<string, ListenerPlacement>()

  constructor(routes: RouteTable, policies: PolicyIndex) {
    this.routes = routes
    this.#policies = policies
  }

  get isEmpty(): boolean {
    return this.#claims.size === 0
  }

  listener(scope: number): ListenerPlacement | undefined {
    return this.#listeners.get(scope)
  }

  entry(id: number): RouteEntry | undefined {
    return this.#entries.get(id)
  }

  /** Returns the placement of a listener; undefined if another listener has its hostname. */
  servingOf({ key, hostname }: ListenerResource): ListenerPlacement | undefined {
    const serving = this.#serving.get(hostname)
    return serving?.resource.key === key ? serving : undefined
  }

  claim(listener: ListenerResource): void {
    const others = this.#claims.get(listener.hostname) ?? []
    const claims = [...others, listener].sort((a, b) => compareText(a.key, b.key))
    this.#claims.set(listener.hostname, claims)
  }

  unclaim({ key, hostname }: ListenerResource): void {
    const left = this.#claims.get(hostname)?.filter((claim) => claim.key !== key) ?? []
    if (left.length === 0) this.#claims.delete(hostname)
    else this.#claims.set(hostname, left)
  }

  isClaimedBy(listener: ListenerResource): boolean {
    return this.#claims.get(listener.hostname)?.includes(listener) ?? false
  }

  /** Returns the listener that should be served for a hostname, and the placement that is served now. */
  contest(hostname: string): { first?: ListenerResource; serving?: ListenerPlacement } {
    return { first: this.#claims.get(hostname)?.[0], serving: this.#serving.get(hostname) }
  }

  /** Returns the served listeners. */
  listeners(): Iterable<ListenerPlacement> {
    return this.#serving.values()
  }

  /** Returns the listener for a server name. `name` is undefined for clients that send none. */
  byServerName(name: string | undefined): ListenerPlacement | undefined {
    for (const hostname of hostnamesFor(name)) {
      const serving = this.#serving.get(hostname)
      if (serving !== undefined) return serving
    }
    return undefined
  }

  /** Returns whether any listener forwards TLS connections rather than serves HTTP. */
  hasStreams(): boolean {
    return [...this.#serving.values()].some(({ resource }) => resource.protocol === 'TLS')
  }

  /**
   * Replaces a listener by a version that differs only in its certificates. Returns its placement if it is
   * served.
   */
  renew(before: ListenerResource, after: ListenerResource): ListenerPlacement | undefined {
    const claims = this.#claims.get(after.hostname) ?? []
    this.#claims.set(
      after.hostname,
      claims.map((claim) => (claim === before ? after : claim)),
    )
    const serving = this.servingOf(after)
    if (serving !== undefined) serving.resource = after
    return serving
  }

  /** Starts to serve a listener. Returns the reason as text if the core refuses it. */
  open(resource: ListenerResource): ListenerPlacement | string {
    const { hostname } = resource
    const scope = this.#listeners.reserve()
    const refusal = refusalOf(this.routes.addListener(hostname, scope))
    if (refusal !== undefined) {
      this.#listeners.drop(scope)
      return refusal
    }
    const placement = new ListenerPlacement(resource, scope, this.#policies)
    this.#listeners.set(scope, placement)
    this.#serving.set(hostname, placement)
    return placement
  }

  /** Stops serving a listener. Its routes must have been removed. */
  close({ resource, scope }: ListenerPlacement): void {
    this.routes.removeListener(resource.hostname)
    this.#serving.delete(resource.hostname)
    this.#listeners.drop(scope)
  }

  /**
   * Adds a rule to a listener, with one entry for every host and match. Matches that the core refuses, such
   * as invalid regular expressions, are skipped, and the reason is added to `refused`.
   */
  add(listener: ListenerPlacement, rule: CompiledRule, refused: string[]): EntryIds {
    const placement = new RulePlacement(listener, rule, this.#policies)
    const { attachments, matches } = rule.resource
    const hostnames = attachments
      .filter(({ listener: key }) => key === listener.resource.key)
      .flatMap(({ hostnames }) => hostnames)
    const ids: number[] = []
    for (const hostname of hostnames) {
      for (const [matchIndex, match] of matches.entries()) {
        const id = this.#entries.reserve()
        const spec = { id, scope: listener.scope, hostname, matchIndex, ...specOf(rule, match) }
        const refusal = refusalOf(this.routes.addRoute(spec))
        if (refusal === undefined) {
          const cookiePath = rule.resource.session && cookiePathOf(match)
          this.#entries.set(id, { placement, prefix: prefixOf(match), cookiePath })
          ids.push(id)
        } else {
          this.#entries.drop(id)
          refused.push(refusal)
        }
      }
    }
    return exactList(ids, (id) => id)
  }

  remove(ids: EntryIds): void {
    for (const id of ids) {
      this.routes.removeRoute(id)
      this.#entries.drop(id)
    }
  }

  /** Frees the memory in the core. */
  free(): void {
    this.routes.free()
  }
}

/** The entries of a route rule on one listener. */
interface InstalledEntries {
  readonly listener: ResourceKey
  readonly table: PortTable
  readonly ids: EntryIds
}

export interface InstalledRoute {
  readonly rule: CompiledRule
  /** An array, because there may be tens of thousands of rules and most are on one listener. */
  entries: readonly InstalledEntries[]
}

export const noEntries: readonly InstalledEntries[] = []

export const isOn = ({ entries }: InstalledRoute, listener: ResourceKey): boolean =>
  entries.some((entry) => entry.listener === listener)

/** Adds the entries of a rule on one more listener. */
export function enter(route: InstalledRoute, entries: InstalledEntries): void {
  route.entries = route.entries.length === 0 ? [entries] : [...route.entries, entries]
}

/** Removes the entries of a rule from a listener, or from all listeners. */
export function leave(route: InstalledRoute, listener?: ResourceKey): void {
  const leaving = (entry: InstalledEntries) => (listener ?? entry.listener) === entry.listener
  for (const { table, ids } of route.entries.filter(leaving)) table.remove(ids)
  route.entries = listener === undefined ? noEntries : route.entries.filter((one) => !leaving(one))
}

/** Returns the rules that are served, one for each of their listeners. */
export function* placementsOf(routes: Iterable<InstalledRoute>): Generator<RulePlacement> {
  for (const { entries } of routes) {
    for (const { table, ids } of entries) {
      const found = ids[0] === undefined ? undefined : table.entry(ids[0])
      if (found !== undefined) yield found.placement
    }
  }
}

function prefixOf({ path }: RouteMatch): string | undefined {
  return path.type === 'PathPrefix' ? path.value : undefined
}

function refusalOf(outcome: Outcome<unknown, { message: string }>): string | undefined {
  return outcome.ok ? undefined : outcome.problems.map(({ message }) => message).join('; ')
}

/**
 * Converts a match to a route of the core. Among equally specific routes the oldest one wins, then the
 * smallest `namespace/name`, then the first rule (Gateway API, HTTPRouteRule). The core compares creation
 * times and then names. So names begin with the order of arrival, for routes without a creation time.
 */
function specOf(
  { resource }: CompiledRule,
  match: RouteMatch,
): Omit<RouteSpec, 'id' | 'scope' | 'matchIndex'> {
  const { created, order, route, ruleIndex } = resource
  return {
    path: { type: pathTypes[match.path.type], value: match.path.value },
    method: match.method,
    headers: match.headers.map(namedMatch),
    query: match.query.map(namedMatch),
    createdAt: created,
    name: `${String(order).padStart(16, '0')}/${route.namespace}/${route.name}`,
    ruleIndex,
  }
}

const pathTypes = {
  Exact: 'exact',
  PathPrefix: 'prefix',
  RegularExpression: 'regex',
} as const satisfies Record<PathMatch['type'], string>

const namedMatch = ({ name, type, value }: NamedMatch) => ({
  name,
  type: type === 'Exact' ? ('exact' as const) : ('regex' as const),
  value,
})

/**
 * Returns the `Path` of a session cookie: the prefix of all paths that the match accepts (GEP-1619, Path).
 */
function cookiePathOf({ path: { type, value } }: RouteMatch): string {
  if (type === 'RegularExpression') return printable(literalPrefix(value))
  const path = printable(value)
  return type === 'PathPrefix' ? withoutSlash(path) : path
}

/** Removes a trailing slash, because the prefix `/a/` also matches `/a`. */
function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

/** Cuts a path before the first segment with a character that cookie paths cannot have (RFC 6265 4.1.1). */
function printable(path: string): string {
  const end = path.search(/[^!-:<-~]/)
  return end < 0 ? path : segmentsBefore(path, end)
}

/** Returns the path segments of a pattern that precede its first special character. */
function literalPrefix(pattern: string): string {
  const text = pattern.startsWith('^') ? pattern.slice(1) : pattern
  if (text.includes('|')) return '/'
  const special = text.search(/[\\.[\](){}*+?$^]/)
  if (special < 0) return text
  // The repeated character may occur zero times, so it is not part of the prefix.
  const isRepeat = '*+?{'.includes(text.charAt(special))
  return segmentsBefore(text, isRepeat ? special - 1 : special)
}

function segmentsBefore(path: string, end: number): string {
  const slash = path.slice(0, Math.max(end, 0)).lastIndexOf('/')
  return slash <= 0 ? '/' : path.slice(0, slash)
}

/**
 * Yields the hostnames that match a server name, most specific first: the exact name, then wildcards from
 * the longest to the shortest, then the empty hostname (Gateway API, Listener hostname). For clients without
 * a server name, only the empty hostname matches.
 */
export function* hostnamesFor(name: string | undefined): Generator<string> {
  if (name !== undefined) {
    const host = name.toLowerCase()
    yield host
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      yield `*${host.slice(dot)}`
    }
  }
  yield ''
}
