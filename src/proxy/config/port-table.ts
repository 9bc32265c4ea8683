/**
 * What is served on one port: listeners as scopes of a route table in the core, and for every
 * match of every rule on a listener one entry there. Ids of the core lead back to entries here.
 */
import type { Outcome } from '../../base/outcome.ts'
import { exactList } from '../../base/repeated.ts'
import type { RouteSpec } from '../../core/route-spec.ts'
import type { RouteTable } from '../../core/route-table.ts'
import { compareText } from '../../model/names.ts'
import type { ListenerResource, NamedMatch, PathMatch, RouteMatch } from '../../model/resources.ts'
import { cookiePathOf } from './cookie-path.ts'
import { ListenerPlacement, RulePlacement } from './placement.ts'
import type { PolicyIndex } from './policies.ts'
import type { CompiledRule } from './rules.ts'
import { hostnamesFor } from './server-names.ts'

/** What a match in the core stands for. */
interface RouteEntry {
  readonly placement: RulePlacement
  /** The PathPrefix that matched; undefined where the path is matched in another way. */
  readonly prefix: string | undefined
  /** Where a cookie of a session counts; undefined where the rule keeps no sessions. */
  readonly cookiePath: string | undefined
}

/** Slots that are reused, so that ids stay small however long the gateway lives. */
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
export type EntryIds = readonly number[]

export class PortTable {
  readonly routes: RouteTable
  readonly #policies: PolicyIndex
  readonly #listeners = new Slots<ListenerPlacement>()
  readonly #entries = new Slots<RouteEntry>()
  /** By hostname: who claims it, smallest key first; the first one serves. */
  readonly #claims = new Map<string, ListenerResource[]>()
  /** By hostname. */
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

  /** The placement of a listener, or undefined where another one has its hostname. */
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

  /** Who should serve a hostname, and who does. */
  contest(hostname: string): { first?: ListenerResource; serving?: ListenerPlacement } {
    return { first: this.#claims.get(hostname)?.[0], serving: this.#serving.get(hostname) }
  }

  /** The one with the smallest key of those that serve. */
  first(): ListenerPlacement | undefined {
    let first: ListenerPlacement | undefined
    for (const serving of this.#serving.values()) {
      if (first === undefined || compareText(serving.resource.key, first.resource.key) < 0) {
        first = serving
      }
    }
    return first
  }

  /** Who serves a name of a TLS handshake; undefined names are those of clients that send none. */
  byServerName(name: string | undefined): ListenerPlacement | undefined {
    for (const hostname of hostnamesFor(name)) {
      const serving = this.#serving.get(hostname)
      if (serving !== undefined) return serving
    }
    return undefined
  }

  /** Does any listener forward what TLS carries, rather than serve HTTP? */
  hasStreams(): boolean {
    return [...this.#serving.values()].some(({ resource }) => resource.protocol === 'TLS')
  }

  /** Takes a listener in place of one from which it differs in its certificates only. */
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

  /** Lets a listener serve; a message where the core refuses it. */
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

  /** Stops a listener, whose entries must be gone. */
  close({ resource, scope }: ListenerPlacement): void {
    this.routes.removeListener(resource.hostname)
    this.#serving.delete(resource.hostname)
    this.#listeners.drop(scope)
  }

  /**
   * Enters a rule for every host and match on a listener. What the core refuses (a regular
   * expression) is added to `refused` and left out.
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

  /** Gives the core its memory back. */
  free(): void {
    this.routes.free()
  }
}

function prefixOf({ path }: RouteMatch): string | undefined {
  return path.type === 'PathPrefix' ? path.value : undefined
}

function refusalOf(outcome: Outcome<unknown, { message: string }>): string | undefined {
  return outcome.ok ? undefined : outcome.problems.map(({ message }) => message).join('; ')
}

/**
 * What the core decides by. Ties of specificity go to the older route, then to the smaller
 * `namespace/name`, then to the order of rules (Gateway API, HTTPRouteRule). The core compares
 * creation times and then text, so the order of first sight, which decides between routes without
 * a creation time, leads the text.
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
