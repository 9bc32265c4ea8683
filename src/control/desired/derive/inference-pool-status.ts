/** Derives the status of InferencePools, which has a parent for each Gateway with routes to the pool. */

import { controllerName, gatewayGroup } from '../../../ground/model/api-names.ts'
import type { DecidedCondition } from '../../../ground/model/conditions.ts'
import { gatewayRef, objectKey } from '../../../ground/model/names.ts'
import type { BackendTarget } from '../../../ground/model/resources.ts'
import { conditionOf, type Failure, notOwn } from '../conditions.ts'
import type { Contribution, Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { inferencePoolStage, type PoolView } from './inference-pool.ts'
import { rejectedConditions } from './rejected.ts'
import type { ParentAttachment } from './route-attachment.ts'

/** Relations from a pool to Gateways: those that accept a route to it, and those that refuse one. */
const relations = { accepted: 'pool-accepted', refused: 'pool-refused' } as const

/** Maximum number of parents in a status. */
const maxParents = 32

/** Contributes the parents of a route, or of models, to each pool that it refers to. */
export function poolContributions(
  parents: readonly Pick<ParentAttachment, 'failure' | 'gateway'>[],
  isAccepted: boolean,
  targets: readonly BackendTarget[],
): Contribution[] {
  const pools = new Set(
    targets.flatMap(({ type, ...name }) =>
      type === 'pool' && 'name' in name ? [objectKey({ kind: 'InferencePool', ...name })] : [],
    ),
  )
  return [...pools].flatMap((pool) =>
    parents.map(({ failure, gateway }): Contribution => {
      const isRouteAccepted = isAccepted && failure === undefined
      return [isRouteAccepted ? relations.accepted : relations.refused, pool, gateway]
    }),
  )
}

const routeRefused: Failure = {
  reason: 'HTTPRouteNotAccepted',
  message: 'no route that leads to the pool is accepted by this Gateway',
  ...notOwn,
}

function conditionsOf(
  { problem }: PoolView,
  isRouteAccepted: boolean,
  generation: number,
): DecidedCondition[] {
  const unaccepted = problem?.condition === 'Accepted' ? problem : undefined
  const unresolved = problem?.condition === 'ResolvedRefs' ? problem : undefined
  const refused = isRouteAccepted ? unaccepted : routeRefused
  return [
    conditionOf('Accepted', refused, 'Accepted', generation),
    conditionOf('ResolvedRefs', unresolved, 'ResolvedRefs', generation),
  ]
}

export const inferencePoolStatusStage: Stage = {
  name: 'inference-pool-status',
  kinds: ['InferencePool'],
  derive(self: ObjectState, read: Reader): Derived {
    const view = read.value<PoolView>(inferencePoolStage.name, self.ref)
    if (view === undefined) return {}
    const pool = objectKey(self.ref)
    const accepted = read.members(relations.accepted, pool)
    const refused = read.members(relations.refused, pool)
    const parents = [...new Set([...accepted, ...refused])].sort().slice(0, maxParents)
    // A pool without parents has no status; an earlier status is removed.
    if (parents.length === 0) return {}
    const rejected = rejectedConditions(self.ref, self.generation, read)
    return {
      status: {
        parents: parents.map((gateway) => {
          const isRouteAccepted = accepted.includes(gateway)
          return {
            parentRef: { group: gatewayGroup, ...gatewayRef(gateway) },
            controllerName,
            conditions: [...conditionsOf(view, isRouteAccepted, self.generation), ...rejected],
          }
        }),
      },
    }
  },
}
