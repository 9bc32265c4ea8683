/**
 * What a change of a backend means for requests whose outcome at that backend is only known from their records,
 * because it depends on bodies or on other services.
 */

import { type Levels, listenerLevels, ruleLevels, targetKey } from '../../gateway/policies/merge.ts'
import { type ObjectRef, objectKey } from '../../ground/model/names.ts'
import type { BackendResource, PolicyResource } from '../../ground/model/resources.ts'
import type { SimulatedOutcome } from '../simulate/index.ts'
import { listenerPlace, type ResourceTable } from './resources.ts'

type DestinationChange =
  | { readonly change: 'none' }
  /** All requests go to other vendors of models. */
  | { readonly change: 'provider'; readonly from: string; readonly to: string }
  | { readonly change: 'unknown'; readonly reason: string }

const none = { change: 'none' } as const

/** Types of backends that forward every request, whatever is in it. */
const plainTypes = new Set<BackendResource['destination']['type']>(['static', 'dynamic'])

export class ChangedDestinations {
  readonly #before: ResourceTable
  readonly #after: ResourceTable
  readonly #changedPolicies: readonly PolicyResource[]
  readonly #changed: ReadonlySet<string>
  /** Whether any backend, or a policy on one, differs. */
  readonly #canDiffer: boolean
  readonly #known = new Map<string, DestinationChange>()

  constructor(before: ResourceTable, after: ResourceTable, changed: ReadonlySet<string>) {
    this.#before = before
    this.#after = after
    this.#changed = changed
    this.#changedPolicies = [...changed].flatMap((key) =>
      [before, after].flatMap((table) => {
        const resource = table.byKey.get(key)
        return resource?.type === 'policy' && resource.section === 'backend' ? [resource] : []
      }),
    )
    const hasBackend = [...changed].some((key) => key.startsWith('backend/'))
    this.#canDiffer = hasBackend || this.#changedPolicies.length > 0
  }

  /** Compares the backend that is the same by name in both outcomes. */
  compare(a: SimulatedOutcome, b: SimulatedOutcome): DestinationChange {
    const { backend } = a
    if (!this.#canDiffer || backend === undefined || backend !== b.backend) return none
    const key = `${backend} ${a.gateway} ${a.listener} ${a.route} ${a.rule}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const change = this.#changeOf(backend, a)
    this.#known.set(key, change)
    return change
  }

  #changeOf(label: string, place: SimulatedOutcome): DestinationChange {
    const ref = destinationOf(label)
    const key = `backend/${ref.namespace}/${ref.name}`
    const [before, after] = [this.#before.backend(key), this.#after.backend(key)]
    const isPlain = [before, after].every(
      (resource) => resource === undefined || plainTypes.has(resource.destination.type),
    )
    if (ref.kind === 'Service' || (ref.kind === 'GatewayBackend' && isPlain)) return none
    const vendors = [vendorsOf(before), vendorsOf(after)] as const
    const isOther = vendors.every(({ size }) => size > 0) && vendors[0].isDisjointFrom(vendors[1])
    if (isOther) {
      const [from, to] = vendors.map((names) => [...names].join(' or '))
      return { change: 'provider', from: from ?? '', to: to ?? '' }
    }
    if (!this.#changed.has(key) && !this.#hasPolicyChange(ref, place)) return none
    const name = `${ref.kind} ${ref.namespace}/${ref.name}`
    return { change: 'unknown', reason: `${name} changes, and bodies are not recorded` }
  }

  #hasPolicyChange(ref: ObjectRef, place: SimulatedOutcome): boolean {
    const targets = new Set(this.#levelsOf(place).flat())
    return this.#changedPolicies.some(
      ({ target }) => objectKey(target) === objectKey(ref) || targets.has(targetKey(target)),
    )
  }

  #levelsOf(place: SimulatedOutcome): Levels {
    const rule = this.#before.ruleOf(place)
    return this.#before.listenersOf(place).flatMap((listener) => {
      const levels = listenerPlace(listener)
      return rule === undefined ? listenerLevels(levels) : ruleLevels(levels, rule)
    })
  }
}

/** Reads the name by which records refer to a backend. */
export function destinationOf(label: string): ObjectRef {
  const [, prefix, namespace = '', name = ''] =
    /^(?:(service|inferencepool)\/)?([^/]*)\/([^: ]*)/.exec(label) ?? []
  const kinds: Readonly<Record<string, string>> = {
    service: 'Service',
    inferencepool: 'InferencePool',
  }
  return { kind: kinds[prefix ?? ''] ?? 'GatewayBackend', namespace, name }
}

function vendorsOf(resource: BackendResource | undefined): ReadonlySet<string> {
  const { destination } = resource ?? {}
  if (destination?.type !== 'ai') return new Set()
  return new Set(destination.groups.flat().map(({ config }) => config.vendor))
}
