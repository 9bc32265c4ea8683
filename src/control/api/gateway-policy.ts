/** GatewayPolicy: settings attached to gateways, routes and destinations. */
import {
  type BackendSpec,
  backendSectionSchema,
  type SectionSpec,
  sectionProperties,
} from '../../gateway/policies/section-schema.ts'
import {
  type AnyProperty,
  choice,
  type Infer,
  integer,
  list,
  object,
  optional,
  required,
  type Schema,
} from '../../ground/schema/field.ts'
import { atMostOneOf, exactlyOneOf } from '../../ground/schema/rules.ts'
import { conditions } from '../../ground/schema/shapes/conditions.ts'
import { parentReference, referenceName } from '../../ground/schema/shapes/references.ts'
import { labels } from '../../ground/schema/shapes/selectors.ts'
import { controllerName, groupName, kindName, sectionName } from '../../ground/schema/strings.ts'

const targetFields = {
  group: required(groupName, 'API group of the target; empty for a Service.'),
  kind: required(kindName, 'Kind of the target.'),
} as const

const section = optional(
  sectionName,
  'Part of the target: a listener, an entry of a ListenerSet, a route rule, a Service port (name or number), a provider or an MCP target.',
)

const port = optional(
  integer({ min: 1, max: 65_535 }),
  'Port of a Gateway: the policy applies to all listeners on it. Only with kind Gateway, and not with sectionName.',
)

const eitherPart = { rules: [atMostOneOf('sectionName', 'port')] }

export const policyTargetReference = object(
  'LocalPolicyTargetReferenceWithSectionName',
  {
    ...targetFields,
    name: required(referenceName, 'Name of the target, in the namespace of the policy.'),
    sectionName: section,
    port,
  },
  eitherPart,
)
export type PolicyTargetReference = Infer<typeof policyTargetReference>

const policyTargetSelector = object(
  'LocalPolicyTargetSelectorWithSectionName',
  {
    ...targetFields,
    matchLabels: required(labels, 'Labels that a target in the namespace of the policy must have.'),
    sectionName: section,
    port,
  },
  eitherPart,
)
type PolicyTargetSelector = Infer<typeof policyTargetSelector>

const policyPhase = choice('PolicyPhase', {
  PreRouting: 'before a route is chosen; on Gateways, listeners and ListenerSets',
  PostRouting: 'after a route is chosen',
})

type TrafficSpec = SectionSpec<'traffic'> & { readonly phase?: Infer<typeof policyPhase> }

export interface GatewayPolicySpec {
  readonly targetRefs?: readonly PolicyTargetReference[]
  readonly targetSelectors?: readonly PolicyTargetSelector[]
  readonly frontend?: SectionSpec<'frontend'>
  readonly traffic?: TrafficSpec
  readonly backend?: BackendSpec
}

const traffic: Record<string, AnyProperty> = {
  phase: optional(policyPhase, {
    doc: 'When the settings apply; settings of the two phases never merge with each other.',
    default: 'PostRouting',
  }),
  ...sectionProperties('traffic'),
}

export const gatewayPolicySpec = object(
  'PolicySpec',
  {
    targetRefs: optional(
      list(policyTargetReference, { min: 1, max: 16 }),
      'Targets of the policy, by name.',
    ),
    targetSelectors: optional(
      list(policyTargetSelector, { min: 1, max: 16 }),
      'Targets of the policy, by label.',
    ),
    frontend: optional(
      object('Frontend', sectionProperties('frontend')),
      'Incoming connections, access log and traces. Targets: Gateway, or a port of it.',
    ),
    traffic: optional(
      object('Traffic', traffic),
      'Requests. Targets: Gateway, ListenerSet (or one of their listeners), HTTPRoute, GRPCRoute (or one of their rules). The more specific target wins for each field.',
    ),
    backend: optional(
      backendSectionSchema('BackendFull'),
      'Connections to backends. Targets: the same as for traffic, which covers all backends behind the target; Service (or a port of it); GatewayBackend (or a provider or MCP target of it).',
    ),
  },
  { rules: [exactlyOneOf('targetRefs', 'targetSelectors')] },
) as Schema<GatewayPolicySpec>

const ancestor = object('PolicyAncestorStatus', {
  ancestorRef: required(parentReference, 'The Gateway of this entry.'),
  controllerName: required(controllerName, 'The controller that wrote this entry.'),
  conditions: optional(conditions(8), 'What the controller found.'),
})

export const policyStatusFields = {
  conditions: optional(conditions(8), 'The worst of all ancestors.'),
  ancestors: required(
    list(ancestor, { max: 16 }),
    'One entry for each Gateway to which the policy applies.',
  ),
} as const

export const gatewayPolicyStatus = object('PolicyStatus', policyStatusFields)
