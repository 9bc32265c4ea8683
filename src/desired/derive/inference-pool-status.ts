/** What InferencePools are told of the Gateways that lead to them (`status.parents`). */
import { controllerName, gatewayGroup } from '../../api/names.ts'
import type { DecidedCondition } from '../../model/conditions.ts'
import { objectKey } from '../../model/names.ts'
import type { BackendTarget } from '../../model/resources.ts'
import { conditionOf, elsewhere, type Failure } from '../conditions.ts'
import type { Contribution, Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { inferencePoolStage, type PoolView } from './inference-pool.ts'
import { rejectedConditions } from './rejected.ts'
import type { ParentAttachment } from './route-attachment.ts'

/** Gateways with a route to a pool that they accept, and that they do not. */
const relations = { accepted: 'pool-accepted', refused: 'pool-refused' } as const

/** The most that a status may hold. */
const most = 32

/** Tells the pools that a route leads to of its parents. */
export function poolContributions(
  parents: readonly ParentAttachment[],
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
      const isTaken = isAccepted && failure === undefined
      return [isTaken ? relations.accepted : relations.refused, pool, gateway]
    }),
  )
}

const routeRefused: Failure = {
  reason: 'HTTPRouteNotAccepted',
  message: 'no route that leads to the pool is accepted by this Gateway',
  ...elsewhere,
}

function conditionsOf(
  { problem }: PoolView,
  isTaken: boolean,
  generation: number,
): DecidedCondition[] {
  const unaccepted = problem?.condition === 'Accepted' ? problem : undefined
  const unresolved = problem?.condition === 'ResolvedRefs' ? problem : undefined
  const refused = isTaken ? unaccepted : routeRefused
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
    const parents = [...new Set([...accepted, ...refused])].sort().slice(0, most)
    // Nobody leads to it: then it has no parents, and what we once told of them goes.
    if (parents.length === 0) return {}
    const rejected = rejectedConditions(self.ref, self.generation, read)
    return {
      status: {
        parents: parents.map((gateway) => {
          const [namespace = '', name = ''] = gateway.split('/')
          const isTaken = accepted.includes(gateway)
          return {
            parentRef: { group: gatewayGroup, kind: 'Gateway', namespace, name },
            controllerName,
            conditions: [...conditionsOf(view, isTaken, self.generation), ...rejected],
          }
        }),
      },
    }
  },
}
