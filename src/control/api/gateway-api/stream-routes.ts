/** TLSRoute, TCPRoute and UDPRoute. */
import { isIpv4, isIpv6 } from '../../../ground/base/ip-address.ts'
import { type Infer, list, object, optional, required } from '../../../ground/schema/field.ts'
import { rule } from '../../../ground/schema/rules.ts'
import { sectionName, wildcardHostname } from '../../../ground/schema/strings.ts'
import { backendRef, routeFields, uniqueRuleNames } from './common.ts'

const rulesOf = (kind: string, max: number) => {
  const streamRule = object(`${kind}Rule`, {
    name: optional(sectionName, 'Name, for sectionName of policies.'),
    backendRefs: required(
      list(backendRef, { min: 1, max: 16 }),
      'Where connections go, by weight.',
    ),
  })
  const rules = list(streamRule, { min: 1, max, rules: [uniqueRuleNames] })
  return required(rules, 'What happens to connections.')
}

const hostnames = (min?: number) =>
  list(wildcardHostname, {
    min,
    max: 1024,
    rules: [
      rule<readonly string[]>({
        message: 'hostnames cannot contain an IP',
        holds: (names) => names.every((name) => !isIpv4(name) && !isIpv6(name)),
      }),
    ],
  })

export const tlsRouteSpec = object('TLSRouteSpec', {
  ...routeFields,
  hostnames: required(hostnames(1), 'Server names.'),
  rules: rulesOf('TLSRoute', 1),
})

// v1alpha2 allowed more rules, and did not require hostnames in a TLSRoute.
export const tlsRouteAlphaSpec = object('TLSRouteSpec', {
  ...routeFields,
  hostnames: optional(hostnames(), 'Server names.'),
  rules: rulesOf('TLSRoute', 16),
})
/** The fields that TLSRoute, TCPRoute and UDPRoute specs of every version have in common. */
export type StreamRouteSpec = Infer<typeof tlsRouteAlphaSpec>

const portRouteSpec = (kind: string, maxRules: number) =>
  object(`${kind}Spec`, { ...routeFields, rules: rulesOf(kind, maxRules) })

export const tcpRouteSpec = portRouteSpec('TCPRoute', 1)
export const tcpRouteAlphaSpec = portRouteSpec('TCPRoute', 16)
export const udpRouteSpec = portRouteSpec('UDPRoute', 1)
export const udpRouteAlphaSpec = portRouteSpec('UDPRoute', 16)
