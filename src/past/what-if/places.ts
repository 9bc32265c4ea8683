/** Finds the places (listeners, rules and their destinations) that a change of resources can affect. */

import { isDeepStrictEqual } from 'node:util'
import { requestRouteKinds } from '../../control/api/kinds.ts'
import {
  listenerLevels,
  ruleLevels,
  type TargetKey,
  targetKey,
} from '../../gateway/policies/merge.ts'
import type {
  ListenerResource,
  PolicyResource,
  Resource,
  RouteResource,
} from '../../ground/model/resources.ts'
import type { StateDifferences } from '../explain/differences.ts'
import type { SimulatedOutcome } from '../simulate/index.ts'
import { listenerPlace, type ResourceTable } from './resources.ts'
import { movedBackend } from './weights.ts'

const placeKinds = new Set(['Gateway', 'ListenerSet', ...requestRouteKinds])

export class Places {
  /** Whether routing may differ, because listeners, routes or policies before routing changed. */
  readonly canReroute: boolean
  readonly #before: ResourceTable
  readonly #after: ResourceTable
  readonly changed: ReadonlySet<string>
  /** Targets of changed policies. */
  readonly #targets = new Set<TargetKey>()
  /** Whether destinations or their policies changed. Any place may use them. */
  readonly #hasDestinations: boolean
  readonly #touched = new Map<string, boolean>()

  constructor(
    before: ResourceTable,
    after: ResourceTable,
    resources: StateDifferences['resources'],
  ) {
    this.#before = before
    this.#after = after
    this.changed = new Set([...resources.added, ...resources.removed, ...resources.changed])
    const versions = [...this.changed].flatMap((key) =>
      [before, after].flatMap((table) => table.byKey.get(key) ?? []),
    )
    for (const resource of versions) {
      if (isPolicyOfPlace(resource)) this.#targets.add(targetKey(resource.target))
    }
    this.canReroute = versions.some(reroutes)
    this.#hasDestinations = versions.some(
      (resource) => !isPolicyOfPlace(resource) && !reroutes(resource),
    )
  }

  /** Whether the change can affect what happens to requests at the place of an outcome. */
  isTouched(outcome: SimulatedOutcome): boolean {
    if (this.#hasDestinations) return true
    const key = `${outcome.gateway} ${outcome.listener} ${outcome.route} ${outcome.rule}`
    const known = this.#touched.get(key)
    if (known !== undefined) return known
    const touched = this.#isTouched(outcome)
    this.#touched.set(key, touched)
    return touched
  }

  #isTouched(outcome: SimulatedOutcome): boolean {
    const listeners = this.#before.listenersOf(outcome)
    if (listeners.length === 0) return true
    const rule = this.#before.ruleOf(outcome)
    if (outcome.route !== undefined && rule === undefined) return true
    return listeners.some((listener) => this.#isChanged(listener, rule))
  }

  #isChanged(listener: ListenerResource, rule: RouteResource | undefined): boolean {
    const place = listenerPlace(listener)
    const levels = rule === undefined ? listenerLevels(place) : ruleLevels(place, rule)
    return (
      this.changed.has(listener.key) ||
      (rule !== undefined && this.changed.has(rule.key)) ||
      levels.some((targets) => targets.some((target) => this.#targets.has(target)))
    )
  }

  /** Whether both outcomes have the same rule, which may have another position in its route. */
  isSameRule(a: SimulatedOutcome, b: SimulatedOutcome): boolean {
    if (a.gateway !== b.gateway || a.listener !== b.listener || a.route !== b.route) return false
    if (a.rule === b.rule) return true
    const [before, after] = [this.#before.ruleOf(a), this.#after.ruleOf(b)]
    return isDeepStrictEqual(before && withoutPosition(before), after && withoutPosition(after))
  }

  /** The backend to which other weights of the rule move a request; undefined if it stays where it was. */
  movedBackend(
    id: string,
    { backend, ...a }: SimulatedOutcome,
    b: SimulatedOutcome,
  ): string | undefined {
    const [before, after] = [this.#before.ruleOf(a), this.#after.ruleOf(b)]
    if (before === undefined || after === undefined || backend === undefined) return undefined
    if (!this.changed.has(before.key)) return undefined
    return movedBackend(id, backend, { before, after })
  }

  hasSameFilters(a: SimulatedOutcome, b: SimulatedOutcome): boolean {
    const [before, after] = [this.#before.ruleOf(a), this.#after.ruleOf(b)]
    return isDeepStrictEqual(before?.filters, after?.filters)
  }
}

const isPolicyOfPlace = (resource: Resource): resource is PolicyResource =>
  resource.type === 'policy' && placeKinds.has(resource.target.kind)

/** Whether the resource can decide which route a request takes, or if it gets to one. */
const reroutes = (resource: Resource): boolean =>
  resource.type === 'listener' ||
  resource.type === 'route' ||
  (isPolicyOfPlace(resource) &&
    (resource.phase === 'PreRouting' || resource.section === 'frontend'))

const withoutPosition = ({
  key: _,
  ruleIndex: __,
  created: ___,
  order: ____,
  ...rule
}: RouteResource) => rule
