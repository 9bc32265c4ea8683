/** The rules of the filter, from the routes of a state in order of precedence. */

import {
  backendLevels,
  type Levels,
  listenerLevels,
  ruleLevels,
} from '../../../gateway/policies/merge.ts'
import { compareAge, type ObjectRef, objectText } from '../../../ground/model/names.ts'
import type {
  BackendResource,
  BackendTarget,
  ListenerResource,
  PolicyResource,
  RouteMatch,
  RouteResource,
} from '../../../ground/model/resources.ts'
import {
  fieldsAt,
  type PolicyContext,
  policiesByTarget,
} from '../../../past/explain/effective-policies.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { ActionCompiler } from './actions.ts'
import type { FilterActions, FilterGap, FilterRule } from './types.ts'

interface PlacedRule {
  readonly rule: FilterRule
  readonly match: RouteMatch
  readonly resource: RouteResource
  readonly matchIndex: number
  readonly hostname: string
}

interface Compiled {
  readonly actions: FilterActions
  readonly gaps: readonly FilterGap[]
}

interface FilterRules {
  readonly rules: readonly FilterRule[]
  readonly gaps: readonly FilterGap[]
  /** The Gateways of these rules, as `namespace/name`. */
  readonly gateways: readonly string[]
}

/** Compiles the HTTP rules of all Gateways, or of the one with this name (`namespace/name`). */
export function filterRules(fold: Fold, gateway: string | undefined): FilterRules {
  const resources = fold.resources()
  const context: PolicyContext = {
    policies: policiesByTarget(resources),
    originOf: () => undefined,
  }
  const listeners = new Map<string, ListenerResource>()
  const backends = new Map<string, BackendResource>()
  const routes: RouteResource[] = []
  const policies: PolicyResource[] = []
  for (const { resource } of resources) {
    if (resource.type === 'listener') listeners.set(resource.key, resource)
    else if (resource.type === 'backend') backends.set(resource.key, resource)
    else if (resource.type === 'route') routes.push(resource)
    else if (resource.type === 'policy') policies.push(resource)
  }
  const compiler = new RuleCompiler(context, backends, policies)
  const gateways = new Set<string>()
  const placed = routes.flatMap((resource) =>
    resource.attachments.flatMap(({ listener: key, hostnames }) => {
      const listener = listeners.get(key)
      if (listener === undefined || !isWanted(listener, gateway)) return []
      gateways.add(nameOf(listener))
      return compiler.place(resource, listener, hostnames)
    }),
  )
  const rules = withoutRepeats(placed.sort(byPrecedence).map(({ rule }) => rule))
  return { rules, gaps: compiler.gaps, gateways: [...gateways] }
}

const nameOf = ({ gateway: { namespace, name } }: ListenerResource) => `${namespace}/${name}`

const isWanted = (listener: ListenerResource, wanted: string | undefined) =>
  wanted === undefined || wanted === nameOf(listener)

/** Listeners that differ only in their port or protocol lead to equal rules. */
function withoutRepeats(rules: readonly FilterRule[]): FilterRule[] {
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()]
}

class RuleCompiler {
  readonly #context: PolicyContext
  readonly #backends: ReadonlyMap<string, BackendResource>
  readonly #policies: readonly PolicyResource[]
  readonly #gaps = new Map<string, FilterGap>()

  constructor(
    context: PolicyContext,
    backends: ReadonlyMap<string, BackendResource>,
    policies: readonly PolicyResource[],
  ) {
    this.#context = context
    this.#backends = backends
    this.#policies = policies
  }

  get gaps(): FilterGap[] {
    return [...this.#gaps.values()]
  }

  /** The rules for one attachment of a rule of a route: one for each hostname and match. */
  place(
    resource: RouteResource,
    listener: ListenerResource,
    hostnames: readonly string[],
  ): PlacedRule[] {
    const { route, ruleIndex } = resource
    const { actions, gaps } = this.#compile(resource, listener)
    for (const gap of gaps) this.#add(gap)
    const isProtected = Object.keys(actions).length > 0
    const name = `${route.namespace}/${route.name}/${ruleIndex}`
    return hostnames.flatMap((hostname) =>
      resource.matches.map((match, matchIndex) => {
        if (match.query.length > 0) {
          const message = `rules[${ruleIndex}].matches[${matchIndex}].queryParams: the filter does not match queries`
          this.#add({ object: objectText(route), message, isProtection: isProtected })
        }
        const { path, method, headers } = match
        const rule = {
          name,
          ...(hostname !== '' && { hostnames: [hostname] }),
          match: { path, ...(method && { method }), ...(headers.length > 0 && { headers }) },
          ...actions,
        }
        return { rule, match, resource, matchIndex, hostname }
      }),
    )
  }

  #add(gap: FilterGap): void {
    this.#gaps.set(JSON.stringify(gap), gap)
  }

  #compile(resource: RouteResource, listener: ListenerResource): Compiled {
    const { gateway, owner, section, port } = listener
    const place = { gateway: { kind: 'Gateway', ...gateway }, owner, section, port }
    const levels = ruleLevels(place, resource)
    const compiler = new ActionCompiler()
    const before = fieldsAt(this.#context, 'traffic', 'PreRouting', listenerLevels(place))
    const traffic = compiler.compile([
      ...before,
      ...fieldsAt(this.#context, 'traffic', 'PostRouting', levels),
    ])
    const models = resource.backends
      .filter(({ weight }) => weight > 0)
      .map(({ target }) => this.#model(target, levels, compiler))
    const [model = {}] = models
    if (models.some((other) => JSON.stringify(other) !== JSON.stringify(model))) {
      compiler.gaps.push({
        object: objectText(resource.route),
        message: `rules[${resource.ruleIndex}].backendRefs: the filter cannot tell backends with different guards apart`,
        isProtection: true,
      })
    }
    const unusable = resource.unusable !== undefined && { unusable: true as const }
    return { actions: { ...traffic, ...model, ...unusable }, gaps: compiler.gaps }
  }

  /** What the filter does for a backend; only backends of models are read. */
  #model(target: BackendTarget, levels: Levels, compiler: ActionCompiler): FilterActions {
    if (target.type !== 'backend') return {}
    const { namespace, name } = target
    const backend: ObjectRef = { kind: 'GatewayBackend', namespace, name }
    const found = this.#backends.get(`backend/${namespace}/${name}`)
    const fields = fieldsAt(
      this.#context,
      'backend',
      'PostRouting',
      backendLevels(levels, { backend, sections: [] }),
    )
    const isModel =
      found !== undefined && 'type' in found.destination && found.destination.type === 'ai'
    const actions = compiler.compile(
      isModel ? fields : fields.filter(({ field }) => field !== 'ai'),
    )
    this.#needNoSections(backend, compiler)
    return isModel && actions.ai === undefined ? { ...actions, ai: {} } : actions
  }

  /** Policies of single providers cannot be applied, because Envoy chooses the provider. */
  #needNoSections({ namespace, name }: ObjectRef, compiler: ActionCompiler): void {
    for (const { target, field, policy } of this.#policies) {
      if (field !== 'ai' || target.section === undefined || target.kind !== 'GatewayBackend')
        continue
      if (target.namespace !== namespace || target.name !== name) continue
      compiler.gaps.push({
        object: objectText({ kind: 'GatewayPolicy', ...policy }),
        message: `backend.ai of the provider ${target.section}: the filter does not know the provider`,
        isProtection: true,
      })
    }
  }
}

// --- precedence ----------------------------------------------------------------------------------

const pathRanks = { Exact: 0, PathPrefix: 1, RegularExpression: 2 } as const

/** More specific hosts, paths and matches come first, as in the Gateway API; then older routes. */
function byPrecedence(a: PlacedRule, b: PlacedRule): number {
  const one = a.match
  const other = b.match
  return (
    hostRank(a.hostname) - hostRank(b.hostname) ||
    b.hostname.length - a.hostname.length ||
    pathRanks[one.path.type] - pathRanks[other.path.type] ||
    other.path.value.length - one.path.value.length ||
    Number(other.method !== undefined) - Number(one.method !== undefined) ||
    other.headers.length - one.headers.length ||
    other.query.length - one.query.length ||
    compareAge(aged(a), aged(b)) ||
    a.resource.ruleIndex - b.resource.ruleIndex ||
    a.matchIndex - b.matchIndex
  )
}

const aged = ({ resource }: PlacedRule) => ({ ...resource, ...resource.route })

function hostRank(hostname: string): number {
  if (hostname === '') return 2
  return hostname.startsWith('*') ? 1 : 0
}
