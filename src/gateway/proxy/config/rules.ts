/** Route rules, compiled for requests. They are immutable; a change replaces a rule as a whole. */
import { exactList, Repeated } from '../../../control/wire/repeated.ts'
import type { SecretValues } from '../../../ground/exchange/exchange.ts'
import { revealFilters } from '../../../ground/model/inline-secrets.ts'
import {
  type BackendTarget,
  type RouteResource,
  secretRefsOf,
  type WeightedBackend,
} from '../../../ground/model/resources.ts'
import type { CompiledFilters, MirrorFilter } from '../filters/compile.ts'
import { compileFilters } from '../filters/compile.ts'

/** A target, with its names for lookups and for logs. */
export interface NamedTarget {
  readonly target: BackendTarget
  /** `namespace/name`; empty if the target is invalid. */
  readonly name: string
  /** Name in the log and in metrics, such as `namespace/name` or `service/namespace/name:port`. */
  readonly label: string | undefined
}

export interface CompiledBackend extends NamedTarget {
  /** Share of the requests. With weight 0, the backend only serves existing sessions. */
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
  /** Backends with a weight above 0. Requests for an invalid backend fail and are not sent to the others. */
  readonly backends: readonly CompiledBackend[]
  readonly totalWeight: number
  /** Backends to which sessions can belong, including those of weight 0. Empty if there are no sessions. */
  readonly sessionBackends: readonly CompiledBackend[]
  /** Why every request of the rule gets 500; undefined if the rule is usable. */
  readonly unusable: string | undefined
  /** Why the rule cannot be compiled yet. Set while the value of one of its secrets is missing. */
  readonly incomplete?: string
}

const noBackends: readonly CompiledBackend[] = []

/** Shares equal lists, because thousands of rules may have the same backends. */
const shared = new Repeated<readonly CompiledBackend[]>()

/** The values of `secrets` are in the compiled filters only, not in the resource of the rule. */
export function compileRule(resource: RouteResource, secrets: SecretValues): CompiledRule {
  if (secretRefsOf(resource).length === 0) return compile(resource)
  try {
    return { ...compile(revealed(resource, secrets)), resource }
  } catch (error) {
    return { ...compile(resource), incomplete: String(error) }
  }
}

function revealed(resource: RouteResource, secrets: SecretValues): RouteResource {
  const backends = resource.backends.map((backend) => ({
    ...backend,
    filters: revealFilters(backend.filters, secrets),
  }))
  return { ...resource, filters: revealFilters(resource.filters, secrets), backends }
}

function compile(resource: RouteResource): CompiledRule {
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

/**
 * Returns the problem of filters that a backendRef cannot have. They run too late to redirect or to mirror.
 */
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

/** Chooses a backend by weight. `draw` is uniform in [0, 1). Returns undefined if no backend has a weight. */
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
