/** Changes of the configuration during exchanges. Only removals of API keys change something for requests. */
import type { Resource } from '../../src/ground/model/resources.ts'
import type { Random } from '../virtual-time/random.ts'

/** Resources that the gateway receives in a new version. */
export interface Change {
  readonly afterMs: number
  readonly text: string
  readonly resources: readonly Resource[]
}

/** A resource that replaces one of the same key at a time. */
export interface Replacement {
  readonly at: number
  readonly resource: Resource
}

/** Applies replacements to resources that come again after them. */
export const withReplacements = (
  resources: readonly Resource[],
  replacements: readonly Replacement[],
  now: number,
): Resource[] =>
  resources.map((resource) => {
    const later = replacements.find((one) => one.at <= now && one.resource.key === resource.key)
    return later?.resource ?? resource
  })

export function randomChanges(random: Random, resources: readonly Resource[]): Change[] {
  if (random.chance(0.6)) return []
  return Array.from({ length: 1 + random.below(3) }, () => {
    const afterMs = random.between(0, random.pick([500, 2_000, 10_000]))
    const moved = random.chance(0.3) ? withoutEndpoint(random, resources) : undefined
    if (moved !== undefined) return { afterMs, text: 'an endpoint is gone', resources: [moved] }
    const type = random.pick(['policy', 'policy', 'route', 'backend', 'service', 'listener'])
    const again = resources.filter((resource) => resource.type === type)
    return { afterMs, text: `every ${type} comes again`, resources: again }
  })
}

/** A slice that has lost one of its two endpoints. */
function withoutEndpoint(random: Random, resources: readonly Resource[]): Resource | undefined {
  const slices = resources.flatMap((resource) =>
    resource.type === 'workload' && resource.endpoints.length > 1 ? [resource] : [],
  )
  if (slices.length === 0) return undefined
  const slice = random.pick(slices)
  return { ...slice, endpoints: [random.pick(slice.endpoints)] }
}
