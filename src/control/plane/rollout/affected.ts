/** Finds the Gateways whose proxies would get something else. */
import { createEvent, type JudgedObject, rolloutSkipped } from '../../../../events/index.ts'
import type { VersionedResource } from '../../../ground/model/resources.ts'
import { Fold } from '../../actors/fold.ts'
import { createGraph } from '../../desired/derivations.ts'
import { PublishedState } from '../../xds/published-state.ts'
import { regexProblem } from '../api-binding.ts'

const writer = { source: '/sluice/rollout', epoch: 0, time: '1970-01-01T00:00:00.000Z' }

/** Returns those of the Gateways, `namespace/name`, that get something else once waiting objects are in force. */
export function affectedGateways(
  fold: Fold,
  objects: readonly JudgedObject[],
  gateways: readonly string[],
): string[] {
  if (gateways.length === 0) return []
  const after = new Fold(createGraph({ checkRegex: regexProblem }))
  after.restore(fold.snapshot())
  const event = createEvent(rolloutSkipped, writer, { id: '', subject: '', data: { objects } })
  after.apply({ position: after.position + 1, event: { ...event, epoch: after.epoch } })
  const [old, fresh] = [stateOf(fold.resources()), stateOf(after.resources())]
  return gateways.filter((name) => {
    const [namespace = '', gateway = ''] = name.split('/')
    const ref = { namespace, name: gateway }
    const [a, b] = [old.openGateway(ref), fresh.openGateway(ref)]
    const keys = new Set([...a.keys(), ...b.keys()])
    return [...keys].some((key) => a.version(key) !== b.version(key))
  })
}

function stateOf(upserted: readonly VersionedResource[]): PublishedState {
  const state = new PublishedState(() => undefined)
  state.publish({ sequence: 0, upserted, removed: [] })
  return state
}
