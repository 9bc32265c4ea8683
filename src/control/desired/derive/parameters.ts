/** Resolves the GatewayParameters that a GatewayClass or a Gateway refers to. */

import { ownGroup } from '../../../ground/model/api-names.ts'
import { parseLogFilter } from '../../../ground/settings/log-filter.ts'
import type { ObjectReference } from '../../api/gateway-api/common.ts'
import { type Failure, notOwn } from '../conditions.ts'
import type { ParametersLevel } from '../deployment/parameters.ts'
import type { Reader } from '../graph.ts'
import { specOf } from '../specs.ts'

/** The parameters, or why the reference cannot be used; both unset if there is no reference. */
interface ResolvedParameters {
  readonly problem?: Omit<Failure, 'reason'>
  readonly level?: ParametersLevel
}

/** `namespace`: for a class the one in its reference, for a Gateway its own. */
export function resolveParameters(
  reference: ObjectReference | undefined,
  namespace: string | undefined,
  read: Reader,
): ResolvedParameters {
  if (reference === undefined) return {}
  const { group, kind, name } = reference
  if (group !== ownGroup || kind !== 'GatewayParameters') {
    const message = `parametersRef must name a GatewayParameters of ${ownGroup}, not ${kind} of "${group}"`
    return { problem: { message } }
  }
  const place = namespace ?? reference.namespace
  if (place === undefined) {
    return { problem: { message: 'parametersRef of a GatewayClass needs a namespace' } }
  }
  const state = read.object('GatewayParameters', place, name)
  const text = `GatewayParameters ${place}/${name}`
  const [refused] = state?.refused?.problems ?? []
  if (refused !== undefined) {
    const message = `${text} is not valid: ${refused.path}: ${refused.message}`
    return { problem: { message, ...notOwn } }
  }
  if (state?.object === undefined)
    return { problem: { message: `${text} does not exist`, ...notOwn } }
  const spec = specOf<'GatewayParameters'>(state.object)
  const level = spec.logging?.level
  if (level !== undefined && parseLogFilter(level) === undefined) {
    const example = 'info or info,sluice::xds=debug'
    const message = `${text}: spec.logging.level: "${level}" is not of the form ${example}`
    return { problem: { message } }
  }
  return { level: { name: text, spec } }
}
