/**
 * The ValidatingAdmissionPolicy that refuses misplaced GatewayPolicies when they are applied. It says in CEL
 * what `derive/policy-targets.ts` decides for statuses.
 */

import { registeredPolicies } from '../../gateway/policies/registry.ts'
import { ownGroup } from '../../ground/model/api-names.ts'
import { earlyKinds, kindsOfSection, targetKindNames } from './derive/policy-targets.ts'

const name = `placement.gatewaypolicies.${ownGroup}`

interface Validation {
  readonly expression: string
  readonly message: string
}

const sections = ['frontend', 'traffic', 'backend'] as const
const list = (names: readonly string[]): string => `[${names.map((one) => `'${one}'`).join(', ')}]`

/** The kinds that `targetRefs` and `targetSelectors` name. */
const kinds = `(has(object.spec.targetRefs) ? object.spec.targetRefs.map(one, one.kind) : []) + (has(object.spec.targetSelectors) ? object.spec.targetSelectors.map(one, one.kind) : [])`

const isEarly = `has(object.spec.traffic) && has(object.spec.traffic.phase) && object.spec.traffic.phase == 'PreRouting'`

function validations(): Validation[] {
  const early = earlyKinds()
  const late = registeredPolicies.filter(
    ({ section, preRouting }) => section === 'traffic' && !preRouting,
  )
  return [
    {
      expression: `variables.kinds.all(kind, kind in ${list(targetKindNames)})`,
      message: `a policy may target ${targetKindNames.join(', ')} only`,
    },
    ...sections.map((section) => ({
      expression: `!has(object.spec.${section}) || variables.kinds.all(kind, kind in ${list(kindsOfSection(section))})`,
      message: `spec.${section} may target ${kindsOfSection(section).join(', ')} only`,
    })),
    {
      expression:
        '!has(object.spec.frontend) || !has(object.spec.targetRefs) || object.spec.targetRefs.all(one, !has(one.sectionName))',
      message: 'spec.frontend may target only a whole Gateway or a port of it, without sectionName',
    },
    {
      expression: `!variables.isEarly || variables.kinds.all(kind, kind in ${list(early)})`,
      message: `phase PreRouting needs one of ${early.join(', ')} as its target`,
    },
    ...late.map(({ field }) => ({
      expression: `!variables.isEarly || !has(object.spec.traffic.${field})`,
      message: `spec.traffic.${field} does not run in phase PreRouting`,
    })),
  ]
}

/** The policy, and the binding that puts it in force. */
export function admissionPolicy(): readonly object[] {
  const apiVersion = 'admissionregistration.k8s.io/v1'
  return [
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name },
      spec: {
        failurePolicy: 'Ignore',
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: [ownGroup],
              apiVersions: ['*'],
              operations: ['CREATE', 'UPDATE'],
              resources: ['gatewaypolicies'],
            },
          ],
        },
        variables: [
          { name: 'kinds', expression: kinds },
          { name: 'isEarly', expression: isEarly },
        ],
        validations: validations().map((one) => ({ ...one, reason: 'Invalid' })),
      },
    },
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name },
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  ]
}
