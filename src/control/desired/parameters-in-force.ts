/** Looks up fields of the GatewayParameters of all Gateways, outside of derivations. */
import { type ObjectRef, objectKey } from '../../ground/model/names.ts'
import type { GatewayParametersSpec } from '../api/gateway-parameters.ts'
import type { Graph } from './graph.ts'
import { specOf } from './specs.ts'

/**
 * A field of the parameters of every Gateway, by `namespace/name`. Parameters of a Gateway that have the field replace
 * those of its class.
 */
export function parametersInForce<Field extends keyof GatewayParametersSpec>(
  graph: Pick<Graph, 'object' | 'objects'>,
  field: Field,
): ReadonlyMap<string, GatewayParametersSpec[Field]> {
  const found = new Map<string, GatewayParametersSpec[Field]>()
  const objectOf = (ref: ObjectRef) => graph.object(objectKey(ref))?.object
  const valueIn = (namespace: string | undefined, name: string | undefined) => {
    if (namespace === undefined || name === undefined) return undefined
    const object = objectOf({ kind: 'GatewayParameters', namespace, name })
    return object && specOf<'GatewayParameters'>(object)[field]
  }
  for (const { ref, object } of graph.objects()) {
    if (ref.kind !== 'Gateway' || object === undefined) continue
    const { gatewayClassName: name, infrastructure } = specOf<'Gateway'>(object)
    const gatewayClass = objectOf({ kind: 'GatewayClass', namespace: '', name })
    const ofClass = gatewayClass && specOf<'GatewayClass'>(gatewayClass).parametersRef
    const value =
      valueIn(ref.namespace, infrastructure?.parametersRef?.name) ??
      valueIn(ofClass?.namespace, ofClass?.name)
    found.set(`${ref.namespace}/${ref.name}`, value)
  }
  return found
}
