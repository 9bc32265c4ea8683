/** TLSRoute, TCPRoute and UDPRoute. */
import { isIP } from 'node:net'
import { type Infer, list, object, optional, required } from '../../schema/field.ts'
import { rule } from '../../schema/rules.ts'
import { sectionName, wildcardHostname } from '../../schema/strings.ts'
import { backendRef, routeFields, uniqueRuleNames } from './common.ts'

const streamRule = (name: string) =>
  object(name, {
    name: optional(sectionName, 'Name, for sectionName of policies.'),
    backendRefs: required(
      list(backendRef, { min: 1, max: 16 }),
      'Where connections go, by weight.',
    ),
  })

const rules = (name: string, max: number) =>
  required(
    list(streamRule(name), { min: 1, max, rules: [uniqueRuleNames] }),
    'What happens to connections.',
  )

const hostnames = (min?: number) =>
  list(wildcardHostname, {
    min,
    max: 1024,
    rules: [
      rule<readonly string[]>({
        message: 'hostnames cannot contain an IP',
        holds: (names) => names.every((name) => isIP(name) === 0),
      }),
    ],
  })

export const tlsRouteSpec = object('TLSRouteSpec', {
  ...routeFields,
  hostnames: required(hostnames(1), 'Server names.'),
  rules: rules('TLSRouteRule', 1),
})

export const tcpRouteSpec = object('TCPRouteSpec', {
  ...routeFields,
  rules: rules('TCPRouteRule', 1),
})

export const udpRouteSpec = object('UDPRouteSpec', {
  ...routeFields,
  rules: rules('UDPRouteRule', 1),
})

// v1alpha2 allowed more rules, and a TLSRoute without hostnames.
export const tlsRouteAlphaSpec = object('TLSRouteSpec', {
  ...routeFields,
  hostnames: optional(hostnames(), 'Server names.'),
  rules: rules('TLSRouteRule', 16),
})
/** What the specs of all three kinds have in common, in every version. */
export type StreamRouteSpec = Infer<typeof tlsRouteAlphaSpec>

export const tcpRouteAlphaSpec = object('TCPRouteSpec', {
  ...routeFields,
  rules: rules('TCPRouteRule', 16),
})

export const udpRouteAlphaSpec = object('UDPRouteSpec', {
  ...routeFields,
  rules: rules('UDPRouteRule', 16),
})
