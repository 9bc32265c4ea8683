/** GatewayPolicy: settings attached to gateways, routes and destinations. */
import { registeredPolicies } from '../policies/registry.ts'
import { list, object, optional, required } from '../schema/field.ts'
import { conditions } from '../schema/shapes/conditions.ts'
import { parentReference } from '../schema/shapes/references.ts'
import { controllerName } from '../schema/strings.ts'
import { policySpecSchema } from './policy-spec.ts'

export const gatewayPolicySpec = policySpecSchema(registeredPolicies)

const ancestor = object('PolicyAncestorStatus', {
  ancestorRef: required(parentReference, 'The Gateway that the rest is about.'),
  controllerName: required(controllerName, 'The controller that wrote this.'),
  conditions: optional(conditions(8), 'What it found out.'),
})

export const gatewayPolicyStatus = object('PolicyStatus', {
  conditions: optional(conditions(8), 'The worst of all ancestors.'),
  ancestors: required(
    list(ancestor, { max: 16 }),
    'One entry for each Gateway that the policy has to do with.',
  ),
})
