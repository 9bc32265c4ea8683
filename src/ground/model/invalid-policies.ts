/** The reason that proxies get if a policy is invalid. They refuse the requests that the policy covers. */
import type { ObjectName } from './names.ts'

/** Why resources of an invalid policy cannot be enforced. */
export const invalidPolicyText = ({ namespace, name }: ObjectName, message: string): string =>
  `GatewayPolicy ${namespace}/${name} is invalid: ${message}`

/** Whether the reason is that the policy is invalid. The field of such a resource says nothing. */
export const standsForInvalidPolicy = (unenforceable: string): boolean =>
  /^GatewayPolicy \S+ is invalid: /.test(unenforceable)
