/** Converts the targets of policies. */
import type { Conversion, Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { namesOf } from '../kubernetes.ts'

export class Targets {
  readonly #result: Conversion

  constructor(result: Conversion) {
    this.#result = result
  }

  /** The targetRefs of a policy; AIGatewayRoutes have become HTTPRoutes of the same name. */
  of(spec: SourceField): Fields[] {
    const result = this.#result
    result.lose(
      spec.get('mergeType'),
      'policies merge for each field, and the more specific one wins',
    )
    if (spec.has('targetSelectors')) {
      spec.take('targetSelectors')
      result.report('protection', spec.get('targetSelectors'), 'name the targets with targetRefs')
    }
    return [...spec.oneOrMore('targetRef'), ...spec.items('targetRefs')].flatMap((ref) => {
      const { kind, ...rest } = ref.object()
      const known = kind === 'AIGatewayRoute' ? 'HTTPRoute' : kind
      if (/^(Gateway|HTTPRoute|GRPCRoute|ListenerSet)$/.test(String(known))) {
        return [{ ...rest, group: 'gateway.networking.k8s.io', kind: known }]
      }
      result.report('protection', ref, `policies of ${String(kind)} are not converted`)
      return []
    })
  }
}

export interface PolicyScene {
  readonly targets: Targets
  readonly result: Conversion
}

/** The name of a policy, after which its namespace is that of the created objects. */
export function enter(field: SourceField, result: Conversion): string {
  const { name, namespace } = namesOf(field)
  result.namespace = namespace
  return name
}
