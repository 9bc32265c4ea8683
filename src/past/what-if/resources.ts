/** Indexes of the resources of a state. */

import { type ListenerPlace, type TargetKey, targetKey } from '../../gateway/policies/merge.ts'
import { type ObjectRef, objectKey, objectText } from '../../ground/model/names.ts'
import type {
  BackendResource,
  ListenerResource,
  PolicyResource,
  Resource,
  RouteResource,
  ServiceResource,
} from '../../ground/model/resources.ts'
import type { Fold } from '../replay/index.ts'
import type { SimulatedOutcome } from '../simulate/index.ts'

export class ResourceTable {
  readonly byKey = new Map<string, Resource>()
  readonly listeners: ListenerResource[] = []
  readonly routes: RouteResource[] = []
  readonly policies: PolicyResource[] = []
  /** By route and rule. */
  readonly #rules = new Map<string | undefined, Map<number | undefined, RouteResource>>()

  constructor(fold: Fold) {
    for (const { resource } of fold.resources()) {
      this.byKey.set(resource.key, resource)
      if (resource.type === 'listener') this.listeners.push(resource)
      else if (resource.type === 'route') this.#addRule(resource)
      else if (resource.type === 'policy') this.policies.push(resource)
    }
  }

  #addRule(resource: RouteResource): void {
    const { route, ruleIndex } = resource
    this.routes.push(resource)
    const name = objectText(route)
    const rules = this.#rules.get(name) ?? new Map<number | undefined, RouteResource>()
    this.#rules.set(name, rules.set(ruleIndex, resource))
  }

  listener(key: string): ListenerResource | undefined {
    const found = this.byKey.get(key)
    return found?.type === 'listener' ? found : undefined
  }

  backend(key: string): BackendResource | undefined {
    const found = this.byKey.get(key)
    return found?.type === 'backend' ? found : undefined
  }

  service(name: string): ServiceResource | undefined {
    const found = this.byKey.get(`service/${name}`)
    return found?.type === 'service' ? found : undefined
  }

  /** Returns the listeners of an outcome. A ListenerSet may have a listener of the same name. */
  listenersOf({ gateway, listener }: SimulatedOutcome): ListenerResource[] {
    return this.listeners.filter(
      ({ gateway: { namespace, name }, section }) =>
        section === listener && gateway === `${namespace}/${name}`,
    )
  }

  ruleOf({ route, rule }: SimulatedOutcome): RouteResource | undefined {
    return this.#rules.get(route)?.get(rule)
  }

  policiesByTarget(): ReadonlyMap<TargetKey, readonly PolicyResource[]> {
    return Map.groupBy(this.policies, ({ target }) => targetKey(target))
  }
}

export const listenerPlace = ({
  gateway,
  owner,
  section,
  port,
}: ListenerResource): ListenerPlace => ({
  gateway: { kind: 'Gateway', ...gateway },
  owner,
  section,
  port,
})

/** The object that contains a policy, as `Kind/namespace/name`. */
export const authorKey = ({ policy, target }: PolicyResource): string =>
  objectKey(authorOf(policy, target))

const authorOf = (
  policy: PolicyResource['policy'],
  { inline, kind }: PolicyResource['target'],
): ObjectRef => ({ kind: inline === true ? kind : 'GatewayPolicy', ...policy })
