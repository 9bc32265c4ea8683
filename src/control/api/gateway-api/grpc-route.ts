import { type Infer, list, object, optional, required, text } from '../../../ground/schema/field.ts'
import { rule } from '../../../ground/schema/rules.ts'
import { matchType } from '../../../ground/schema/shapes/headers.ts'
import { plainHeaderName, sectionName } from '../../../ground/schema/strings.ts'
import {
  matchBudget,
  requestHostnames,
  routeFields,
  uniqueRuleNames,
  weightedBackendRules,
  weightedFields,
} from './common.ts'
import { grpcFilters } from './filters.ts'
import { sessionPersistence } from './session-persistence.ts'

interface Method {
  readonly type?: string
  readonly service?: string
  readonly method?: string
}

const exactly = (member: 'service' | 'method', pattern: RegExp) =>
  rule<Method>({
    message: `${member} must only contain valid characters`,
    holds: (value) => {
      const name = value[member]
      return (value.type ?? 'Exact') !== 'Exact' || name === undefined || pattern.test(name)
    },
    at: member,
  })

const methodMatch = object(
  'GRPCMethodMatch',
  {
    type: optional(matchType, { doc: 'How names are compared.', fill: 'Exact' }),
    service: optional(text({ max: 1024 }), 'Service; any if not set.'),
    method: optional(text({ max: 1024 }), 'Method; any if not set.'),
  },
  {
    rules: [
      rule<Method>({
        message: "one or both of 'service' or 'method' must be specified",
        holds: ({ service, method }) => service !== undefined || method !== undefined,
      }),
      exactly('service', /^\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*$/i),
      exactly('method', /^[A-Za-z_][A-Za-z_0-9]*$/),
    ],
  },
)
export type GrpcMethodSpec = Infer<typeof methodMatch>

const headerMatch = object('GRPCHeaderMatch', {
  type: optional(matchType, { doc: 'How value is compared.', fill: 'Exact' }),
  name: required(plainHeaderName, 'Name; case does not matter.'),
  value: required(text({ min: 1, max: 4096 }), 'Value or pattern.'),
})

const routeRule = object('GRPCRouteRule', {
  name: optional(sectionName, 'Name, for sectionName of policies.'),
  matches: optional(
    list(
      object('GRPCRouteMatch', {
        method: optional(methodMatch, 'Service and method.'),
        headers: optional(list(headerMatch, { max: 16, unique: { by: ['name'] } }), 'Headers.'),
      }),
      { max: 64 },
    ),
    'Any of these; everything if not set.',
  ),
  filters: optional(grpcFilters, 'Changes to requests and responses.'),
  backendRefs: optional(
    list(
      object(
        'GRPCBackendRef',
        { ...weightedFields, filters: optional(grpcFilters, 'For this backend only.') },
        { rules: weightedBackendRules },
      ),
      { max: 16 },
    ),
    'Where requests go, by weight.',
  ),
  sessionPersistence: optional(sessionPersistence, 'Keeps a client at one backend (experimental).'),
})
export type GrpcRuleSpec = Infer<typeof routeRule>

export const grpcRouteSpec = object('GRPCRouteSpec', {
  ...routeFields,
  hostnames: requestHostnames,
  rules: optional(
    list(routeRule, { max: 16, rules: [matchBudget, uniqueRuleNames] }),
    'What happens to requests.',
  ),
})
export type GrpcRouteSpec = Infer<typeof grpcRouteSpec>
