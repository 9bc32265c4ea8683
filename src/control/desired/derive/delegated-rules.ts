/** Joins the rules of an HTTPRoute with the rules of other HTTPRoutes that delegate requests to it. */
import { type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import type {
  Attachment,
  DelegatedFrom,
  NamedMatch,
  PathMatch,
  RouteFilter,
  RouteMatch,
} from '../../../ground/model/resources.ts'
import type { HttpRuleSpec } from '../../api/gateway-api/http-route.ts'
import { notOwn } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { type DelegatingRule, delegatingRules } from './delegation.ts'
import type { ViewedRule } from './http-rule.ts'
import { intersectHostnames, type ParentAttachment } from './route-attachment.ts'
import { readParents } from './route-claims.ts'
import { attachmentsOf } from './routes.ts'

/** Bounds: rules above a route in one chain, and chains of one route. */
const maxLinks = 3
const maxChains = 64

/** The rules that delegate requests to a route, from the rule of the route that is attached to a listener. */
export interface Chain {
  readonly links: readonly DelegatingRule[]
  /** The parents of the first route in the chain that accept it. */
  readonly parents: readonly ParentAttachment[]
  readonly attachments: readonly Attachment[]
}

const routeState = ({ kind, namespace, name }: ObjectRef, read: Reader) =>
  read.object(kind, namespace, name)

/** The chains that lead to the route. Delegations that form a cycle are left out by the stage before. */
export function chainsTo(self: ObjectState, read: Reader): readonly Chain[] {
  const chains: Chain[] = []
  const visit = (state: ObjectState, below: readonly DelegatingRule[]) => {
    if (below.length > 0) {
      const parents = readParents(state, read).filter(({ failure }) => failure === undefined)
      const attachments = attachmentsOf(read, parents)
      if (attachments.length > 0) chains.push({ links: below, parents, attachments })
    }
    if (below.length === maxLinks) return
    for (const rule of delegatingRules(state.ref, read)) {
      if (chains.length >= maxChains) return
      const above = routeState(rule.route, read)
      if (above !== undefined) visit(above, [rule, ...below])
    }
  }
  visit(self, [])
  return chains.flatMap((chain) => narrowed(chain, self, read) ?? [])
}

/** The chain with the hostnames that all of its routes have; undefined if they share none. */
function narrowed(chain: Chain, self: ObjectState, read: Reader): Chain | undefined {
  const states = [...chain.links.slice(1).map(({ route }) => routeState(route, read)), self]
  const lists = states.map(
    (state) => specOf<'HTTPRoute'>(state?.object ?? noObject).hostnames ?? [],
  )
  const attachments = chain.attachments.flatMap(({ listener, hostnames }): Attachment[] => {
    const shared = lists.reduce<readonly string[]>(
      (given, own) => given.flatMap((hostname) => intersectHostnames(hostname, own) ?? []),
      hostnames,
    )
    return shared.length === 0 ? [] : [{ listener, hostnames: [...new Set(shared)].sort() }]
  })
  return attachments.length === 0 ? undefined : { ...chain, attachments }
}

const noObject = { apiVersion: '', kind: 'HTTPRoute', metadata: {}, spec: {} }

/** Compiles a rule of another route. */
type ViewOther = (rule: HttpRuleSpec, index: number, route: ObjectRef) => ViewedRule

/** What the delegating rules of a chain give to the rules below them. */
export interface ChainRule {
  readonly chain: Chain
  readonly delegatedFrom: readonly DelegatedFrom[]
  readonly matches: readonly RouteMatch[]
  readonly filters: readonly RouteFilter[]
  readonly timeouts: Pick<ViewedRule, 'requestTimeoutMs' | 'backendTimeoutMs'>
}

/** Compiles the delegating rules of a chain; undefined if one of them is unusable or matches nothing. */
export function chainRule(chain: Chain, read: Reader, view: ViewOther): ChainRule | undefined {
  let joined: ChainRule = { chain, delegatedFrom: [], matches: [], filters: [], timeouts: {} }
  for (const { route, ruleIndex } of chain.links) {
    const object = routeState(route, read)?.object
    const rule = object && specOf<'HTTPRoute'>(object).rules?.[ruleIndex]
    if (rule === undefined) return undefined
    const viewed = view(rule, ruleIndex, route)
    if (viewed.unusable !== undefined) return undefined
    const { matches, filters, ...timeouts } = below(joined, viewed)
    if (matches.length === 0) return undefined
    const link = { route, ruleIndex, ...(rule.name !== undefined && { ruleName: rule.name }) }
    joined = { chain, delegatedFrom: [...joined.delegatedFrom, link], matches, filters, timeouts }
  }
  return joined
}

type JoinableRule = Pick<
  ViewedRule,
  'matches' | 'filters' | 'requestTimeoutMs' | 'backendTimeoutMs'
>

/** The rule with the conditions and filters of the rules above it; its own timeouts replace theirs. */
export function below(
  { delegatedFrom, matches, filters, timeouts }: ChainRule,
  rule: JoinableRule,
): JoinableRule {
  const { requestTimeoutMs = timeouts.requestTimeoutMs } = rule
  const { backendTimeoutMs = timeouts.backendTimeoutMs } = rule
  const isFirst = delegatedFrom.length === 0
  return {
    matches: isFirst ? rule.matches : matches.flatMap((upper) => joinAll(upper, rule.matches)),
    filters: [...filters, ...rule.filters],
    ...(requestTimeoutMs !== undefined && { requestTimeoutMs }),
    ...(backendTimeoutMs !== undefined && { backendTimeoutMs }),
  }
}

const joinAll = (upper: RouteMatch, matches: readonly RouteMatch[]) =>
  matches.flatMap((match) => joinMatches(upper, match) ?? [])

/** The requests that both match; undefined if there are none. */
function joinMatches(upper: RouteMatch, own: RouteMatch): RouteMatch | undefined {
  const path = joinPaths(upper.path, own.path)
  const headers = joinNamed(upper.headers, own.headers)
  const query = joinNamed(upper.query, own.query)
  const method = own.method ?? upper.method
  if (path === undefined || headers === undefined || query === undefined) return undefined
  if (upper.method !== undefined && upper.method !== method) return undefined
  return { path, headers, query, ...(method !== undefined && { method }) }
}

/** `upper` is a prefix. Patterns are left out, since what they match is not known to be below it. */
function joinPaths({ value: prefix }: PathMatch, own: PathMatch): PathMatch | undefined {
  if (own.type === 'RegularExpression') return undefined
  if (isBelow(own.value, prefix)) return own
  return own.type === 'PathPrefix' && isBelow(prefix, own.value)
    ? { type: 'PathPrefix', value: prefix }
    : undefined
}

/** Compares whole segments: `/shop/cart` is below `/shop` and `/shop/`, and `/shopping` is not. */
function isBelow(path: string, prefix: string): boolean {
  const start = prefix.replace(/\/+$/, '')
  return path === start || path.startsWith(`${start}/`)
}

/** If both have a condition for one name, both must match; undefined if they need different values. */
function joinNamed(
  upper: readonly NamedMatch[],
  own: readonly NamedMatch[],
): NamedMatch[] | undefined {
  const joined = [...upper]
  for (const match of own) {
    const same = upper.find(({ name }) => name === match.name)
    if (same?.type === match.type && same.value === match.value) continue
    if (same?.type === 'Exact' && match.type === 'Exact') return undefined
    joined.push(match)
  }
  return joined
}

/** The parents of the route that are HTTPRoutes of this controller, with or without a delegation to it. */
export function delegatingParents(
  { ref, object }: ObjectState,
  chains: readonly Chain[],
  read: Reader,
): readonly ParentAttachment[] {
  if (object === undefined) return []
  const { parentRefs = [] } = specOf<'HTTPRoute'>(object)
  return parentRefs.flatMap((parentRef): ParentAttachment[] => {
    if (parentRef.kind !== 'HTTPRoute') return []
    const { namespace = ref.namespace, name } = parentRef
    const parent = { kind: 'HTTPRoute', namespace, name }
    const attached = chains.find(({ links }) => isLast(links, parent))
    const [first] = attached?.parents ?? []
    if (first !== undefined) {
      return [{ parentRef, gateway: first.gateway, failure: undefined, attached: [] }]
    }
    const state = routeState(parent, read)
    const [gateway] = state === undefined ? [] : gatewaysOf(state, read)
    if (gateway === undefined) return []
    const message = `HTTPRoute ${namespace}/${name} has no rule that delegates requests to this route, or shares no hostname with it`
    const failure = { reason: 'NoMatchingParent', message, ...notOwn }
    return [{ parentRef, gateway, failure, attached: [] }]
  })
}

function isLast(links: readonly DelegatingRule[], parent: ObjectRef): boolean {
  const last = links.at(-1)
  return last !== undefined && objectKey(last.route) === objectKey(parent)
}

/** Gateways of this controller to which requests of the route belong. */
const gatewaysOf = (state: ObjectState, read: Reader): readonly string[] =>
  [...readParents(state, read), ...chainsTo(state, read).flatMap(({ parents }) => parents)].map(
    ({ gateway }) => gateway,
  )
