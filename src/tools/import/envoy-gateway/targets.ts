/** Converts the targets of policies. */
import { gatewayGroup } from '../../../ground/model/api-names.ts'
import type { Conversion, Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { namesOf } from '../kubernetes.ts'

/** The targetRefs of a policy; AIGatewayRoutes and MCPRoutes have become HTTPRoutes of the same name. */
export function targetsOf(spec: SourceField): Fields[] {
  spec.get('mergeType').lose('policies merge for each field, and the more specific one wins')
  spec.get('targetSelectors').lose('name the targets with targetRefs', 'protection')
  return [...spec.oneOrMore('targetRef'), ...spec.items('targetRefs')].flatMap((ref) => {
    const { kind, ...rest } = ref.object()
    const known = kind === 'AIGatewayRoute' || kind === 'MCPRoute' ? 'HTTPRoute' : kind
    if (/^(Gateway|HTTPRoute|GRPCRoute|ListenerSet)$/.test(String(known))) {
      return [{ ...rest, group: gatewayGroup, kind: known }]
    }
    ref.report('protection', `policies of ${String(kind)} are not converted`)
    return []
  })
}

/** The name of a policy, after which its namespace is that of the created objects. */
export function enter(field: SourceField, result: Conversion): string {
  const { name, namespace } = namesOf(field)
  result.namespace = namespace
  return name
}

/** The name in a reference to an object. */
export const nameIn = (ref: SourceField): string => String(ref.object().name)
