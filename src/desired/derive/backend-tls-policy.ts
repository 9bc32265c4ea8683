/**
 * BackendTLSPolicy: not supported yet. It demands TLS to a backend, so what it targets is refused
 * instead of being reached in clear.
 */
import { objectKey } from '../../model/names.ts'
import type { PolicyResource, PolicyTarget } from '../../model/resources.ts'
import { conditionFalse, conditionTrue } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { controllerName, gatewayGroup, type PolicyTargetRef, specOf } from '../shapes.ts'
import { policyResource } from './compile-policy.ts'

const message = 'BackendTLSPolicy is not supported yet; what it targets is not reached'

/** What it targets; of a version that was refused, as far as that can be read. */
function targetsOf({ ref, object, refused }: ObjectState): PolicyTarget[] {
  const named =
    object === undefined
      ? (refused?.targets ?? [])
      : (specOf<{ targetRefs?: readonly PolicyTargetRef[] }>(object).targetRefs ?? [])
  return named.flatMap(({ kind, name, sectionName }) =>
    name === undefined
      ? []
      : [
          {
            kind,
            namespace: ref.namespace,
            name,
            ...(sectionName !== undefined && { section: sectionName }),
          },
        ],
  )
}

function refusal(self: ObjectState, target: PolicyTarget): PolicyResource {
  const field = {
    owner: self.ref,
    age: self.age,
    section: 'backend',
    field: 'tls',
    phase: 'PostRouting',
    path: 'spec',
    spec: undefined,
  } as const
  const compiled = {
    definition: undefined,
    config: 'null',
    configVersion: 0,
    unenforceable: message,
    effective: true,
    findings: [],
  }
  const resource = policyResource(field, compiled, target)
  // A GatewayPolicy may have the same name.
  return { ...resource, key: resource.key.replace('policy/', 'policy/BackendTLSPolicy/') }
}

export const backendTlsPolicyStage: Stage = {
  name: 'backend-tls-policy',
  kinds: ['BackendTLSPolicy'],
  derive(self: ObjectState, read: Reader): Derived {
    const { generation } = self.object === undefined ? (self.refused ?? self) : self
    const targets = targetsOf(self)
    const gateways = new Set(
      targets.flatMap(({ kind, namespace, name }) =>
        read.members('reach', objectKey({ kind, namespace, name })),
      ),
    )
    const conditions = [
      conditionFalse('Accepted', 'Invalid', generation, message),
      conditionTrue('ResolvedRefs', 'ResolvedRefs', generation),
    ]
    return {
      resources: targets.map((target) => refusal(self, target)),
      status: {
        ancestors: [...gateways].sort().map((gateway) => {
          const [namespace = '', name = ''] = gateway.split('/')
          const ancestorRef = { group: gatewayGroup, kind: 'Gateway', namespace, name }
          return { ancestorRef, controllerName, conditions }
        }),
      },
    }
  },
}
