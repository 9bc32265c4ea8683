/**
 * Finds the rules that serve requests which a policy no longer protects because its target was removed, such as a route
 * that was renamed or a backend that was replaced.
 */
import { intersectHostnames } from '../../control/desired/derive/route-attachment.ts'
import { ruleLevels, targetKey } from '../../gateway/policies/merge.ts'
import { policyName } from '../../gateway/policies/registry.ts'
import { objectText } from '../../ground/model/names.ts'
import type {
  ListenerResource,
  PathMatch,
  PolicyResource,
  RouteResource,
} from '../../ground/model/resources.ts'
import { listenerPlace, type ResourceTable } from './resources.ts'

/** One match of a rule at one listener and hostname. */
interface Entry {
  readonly listener: ListenerResource
  readonly rule: RouteResource
  readonly hostname: string
  readonly path: PathMatch
}

export class TakenOver {
  readonly #before: ResourceTable
  readonly #after: ResourceTable
  /** The entries by Gateway and port. */
  #later: ReadonlyMap<string, readonly Entry[]> | undefined
  #known: ReadonlySet<string> | undefined

  constructor(before: ResourceTable, after: ResourceTable) {
    this.#before = before
    this.#after = after
  }

  /** Returns the route that serves requests that the policy protected, without a policy of the same name; undefined if there is none. */
  by(policy: PolicyResource): string | undefined {
    this.#later ??= Map.groupBy(entriesOf(this.#after), portOf)
    for (const entry of entriesOf(this.#before)) {
      if (!isAt(policy, entry)) continue
      const found = this.#later
        .get(portOf(entry))
        ?.find((next) => this.#serves(next, entry) && !this.#isProtected(next, policy))
      if (found !== undefined) return objectText(found.rule.route)
    }
    return undefined
  }

  /** Returns whether an entry gets requests of another one that it did not get before. Redirects do not serve requests. */
  #serves(next: Entry, { hostname, path }: Entry): boolean {
    const { filters, unusable } = next.rule
    if (unusable !== undefined || filters.some(({ type }) => type === 'redirect')) return false
    const shared = intersectHostnames(next.hostname, [hostname])
    if (shared === undefined || !overlap(next.path, path)) return false
    this.#known ??= new Set([...entriesOf(this.#before)].map(identityOf))
    if (!this.#known.has(identityOf(next))) return true
    return shared.includes(hostname) && contains(next.path, path)
  }

  #isProtected(entry: Entry, { section, field }: PolicyResource): boolean {
    const name = policyName(section, field)
    const policies = this.#after.policies.filter(
      (one) => policyName(one.section, one.field) === name,
    )
    if (policies.some((one) => levelsOf(entry).has(targetKey(one.target)))) return true
    const { backends } = entry.rule
    return (
      backends.length > 0 &&
      backends.every((backend) => policies.some((one) => isOfBackend(one, backend)))
    )
  }
}

function* entriesOf(table: ResourceTable): Generator<Entry> {
  for (const rule of table.routes) {
    for (const { listener: key, hostnames } of rule.attachments) {
      const listener = table.listener(key)
      if (listener === undefined) continue
      for (const hostname of hostnames) {
        for (const { path } of rule.matches) yield { listener, rule, hostname, path }
      }
    }
  }
}

const portOf = ({ listener: { gateway, port } }: Entry): string =>
  `${gateway.namespace}/${gateway.name} ${port}`

const identityOf = ({ listener, rule: { route }, hostname, path }: Entry): string =>
  JSON.stringify([listener.key, objectText(route), hostname, path.type, path.value])

const levelsOf = ({ listener, rule }: Entry): ReadonlySet<string> =>
  new Set(ruleLevels(listenerPlace(listener), rule).flat())

const isAt = (policy: PolicyResource, entry: Entry): boolean =>
  entry.rule.backends.some((backend) => isOfBackend(policy, backend)) ||
  levelsOf(entry).has(targetKey(policy.target))

function isOfBackend(
  { target: { kind, namespace, name } }: PolicyResource,
  { target }: RouteResource['backends'][number],
): boolean {
  if (!('name' in target) || target.name !== name || target.namespace !== namespace) return false
  return kinds[target.type] === kind
}

const kinds: Readonly<Record<string, string>> = {
  service: 'Service',
  backend: 'GatewayBackend',
  pool: 'InferencePool',
}

/** Returns whether a path may match both. The paths that two regular expressions share are not computed. */
const overlap = (a: PathMatch, b: PathMatch): boolean =>
  isRegex(a) || isRegex(b) || contains(a, b) || contains(b, a)

/** Whether every path that `inner` matches is also one of `outer`; false if that is unknown. */
function contains(outer: PathMatch, inner: PathMatch): boolean {
  if (outer.type === inner.type && outer.value === inner.value) return true
  if (outer.type !== 'PathPrefix') return false
  const prefix = outer.value.replace(/\/$/, '')
  if (isRegex(inner)) return prefix === ''
  return inner.value === prefix || inner.value.startsWith(`${prefix}/`)
}

const isRegex = ({ type }: PathMatch): boolean => type === 'RegularExpression'
