/** Route rules in the form that requests need: immutable, replaced as a whole by a change. */
import { exactList, Repeated } from '../../base/repeated.ts'
import type { BackendTarget, RouteResource, WeightedBackend } from '../../model/resources.ts'
import type { CompiledFilters, MirrorFilter } from '../filters/compile.ts'
import { compileFilters } from '../filters/compile.ts'

/** A target with the names that it is looked up and logged by. */
export interface NamedTarget {
  readonly target: BackendTarget
  /** `namespace/name`; empty for an invalid one. */
  readonly name: string
  /**
   * For the log: `namespace/name` of a GatewayBackend, `service/namespace/name:port`,
   * `inferencepool/namespace/name`.
   */
  readonly label: string | undefined
}

export interface CompiledBackend extends NamedTarget {
  /** 0 where only a session leads there. */
  readonly weight: number
  readonly filters: CompiledFilters
}

interface CompiledMirror extends NamedTarget {
  readonly filter: MirrorFilter
}

export interface CompiledRule {
  readonly resource: RouteResource
  readonly filters: CompiledFilters
  readonly mirrors: readonly CompiledMirror[]
  /** Those with a weight; an invalid one keeps its share. */
  readonly backends: readonly CompiledBackend[]
  readonly totalWeight: number
  /** Those that a session can belong to, of no weight too; empty where the rule keeps none. */
  readonly sessionBackends: readonly CompiledBackend[]
  /** Why every request that the rule matches is answered 500. */
  readonly unusable: string | undefined
}

const noBackends: readonly CompiledBackend[] = []

/** Thousands of rules lead to the same backends. */
const shared = new Repeated<readonly CompiledBackend[]>()

export function compileRule(resource: RouteResource): CompiledRule {
  const filters = compileFilters(resource.filters)
  const all = compileBackends(resource.backends)
  const backends = all.every(({ weight }) => weight > 0)
    ? all
    : all.filter(({ weight }) => weight > 0)
  return {
    resource,
    filters,
    mirrors: exactList(filters.mirrors, (filter) => ({ ...nameTarget(filter.target), filter })),
    backends,
    totalWeight: backends.reduce((sum, { weight }) => sum + weight, 0),
    sessionBackends: resource.session === undefined ? noBackends : all.filter(({ label }) => label),
    unusable: resource.unusable ?? filters.problem ?? backendProblem(backends),
  }
}

function compileBackends(all: readonly WeightedBackend[]): readonly CompiledBackend[] {
  const backends = all.map(({ weight, target, filters }): CompiledBackend => {
    const { name, label } = nameTarget(target)
    return { target, name, label, weight, filters: compileFilters(filters) }
  })
  const isPlain = all.every(({ target, filters }) => target.type !== 'invalid' && !filters.length)
  if (!isPlain) return backends
  return shared.share(JSON.stringify(all), backends)
}

/** The same rule, failing closed. */
export function closeRule(rule: CompiledRule, why: string): CompiledRule {
  return { ...rule, unusable: rule.unusable ?? why }
}

/** Filters of a backendRef come after the choice of a backend, too late to answer or to mirror. */
function backendProblem(backends: readonly CompiledBackend[]): string | undefined {
  for (const { filters } of backends) {
    if (filters.problem !== undefined) return filters.problem
    if (filters.redirect !== undefined) return 'a backendRef cannot redirect'
    if (filters.mirrors.length > 0) return 'a backendRef cannot mirror'
  }
  return undefined
}

export function nameTarget(target: BackendTarget): NamedTarget {
  if (target.type === 'invalid') return { target, name: '', label: undefined }
  const name = `${target.namespace}/${target.name}`
  const label =
    target.type === 'service'
      ? `service/${name}:${target.port}`
      : target.type === 'pool'
        ? `inferencepool/${name}`
        : name
  return { target, name, label }
}

/** Weighted choice: `draw` is uniform in [0, 1); undefined where no backend has a weight. */
export function pickBackend<Backend extends { readonly weight: number }>(
  rule: { readonly backends: readonly Backend[]; readonly totalWeight: number },
  draw: number,
): Backend | undefined {
  const [only] = rule.backends
  if (rule.backends.length < 2) return only
  let left = draw * rule.totalWeight
  for (const backend of rule.backends) {
    left -= backend.weight
    if (left < 0) return backend
  }
  return rule.backends.at(-1)
}
