/** What proxies are told about a policy that is not valid as a whole. It closes what its target serves. */
import type { ObjectName } from './names.ts'

/** Why resources of an invalid policy cannot be enforced. */
export const invalidPolicyText = ({ namespace, name }: ObjectName, message: string): string =>
  `GatewayPolicy ${namespace}/${name} is invalid: ${message}`

/** Whether a resource stands for an invalid policy, whatever its field is. */
export const standsForInvalidPolicy = (unenforceable: string): boolean =>
  /^GatewayPolicy \S+ is invalid: /.test(unenforceable)
