/** Assembles the spec of GatewayPolicy from the list of policy fields. */
import type { registeredPolicies } from '../policies/registry.ts'
import {
  type AnyProperty,
  choice,
  type Infer,
  list,
  object,
  optional,
  required,
  type Schema,
} from '../schema/field.ts'
import { atLeastOneOf, exactlyOneOf } from '../schema/rules.ts'
import type { SectionField, SectionName } from '../schema/section-field.ts'
import { referenceName } from '../schema/shapes/references.ts'
import { labels } from '../schema/shapes/selectors.ts'
import { groupName, kindName, sectionName } from '../schema/strings.ts'

const targetFields = {
  group: required(groupName, 'API group of the target; empty for a Service.'),
  kind: required(kindName, 'Kind of the target.'),
} as const

const section = optional(
  sectionName,
  'Part of the target: a listener, an entry of a ListenerSet, a route rule, a Service port (name or number), a provider or an MCP target.',
)

const policyTargetReference = object('LocalPolicyTargetReferenceWithSectionName', {
  ...targetFields,
  name: required(referenceName, 'Name of the target, in the namespace of the policy.'),
  sectionName: section,
})
export type PolicyTargetReference = Infer<typeof policyTargetReference>

const policyTargetSelector = object('LocalPolicyTargetSelectorWithSectionName', {
  ...targetFields,
  matchLabels: required(labels, 'Labels that a target in the namespace of the policy must have.'),
  sectionName: section,
})
type PolicyTargetSelector = Infer<typeof policyTargetSelector>

const policyPhase = choice('PolicyPhase', {
  PreRouting: 'before a route is chosen; on Gateways, listeners and ListenerSets',
  PostRouting: 'after a route is chosen',
})

type PolicyEntry = (typeof registeredPolicies)[number]

type SectionSpec<Section extends SectionName> = {
  readonly [E in Extract<PolicyEntry, { section: Section }> as E['field']]?: Infer<E['schema']>
}

type FrontendSpec = SectionSpec<'frontend'>
type TrafficSpec = SectionSpec<'traffic'> & { readonly phase?: Infer<typeof policyPhase> }
type BackendFullSpec = SectionSpec<'backend'>

export interface GatewayPolicySpec {
  readonly targetRefs?: readonly PolicyTargetReference[]
  readonly targetSelectors?: readonly PolicyTargetSelector[]
  readonly frontend?: FrontendSpec
  readonly traffic?: TrafficSpec
  readonly backend?: BackendFullSpec
}

/** The fields of one section, as properties. */
function propertiesOf(
  entries: readonly SectionField[],
  of: SectionName,
): Record<string, AnyProperty> {
  const properties: Record<string, AnyProperty> = {}
  for (const { section: at, field, schema, ...info } of entries) {
    if (at === of) properties[field] = optional(schema, info)
  }
  return properties
}

/** Settings of connections to backends; `only` leaves out what a kind of backend cannot have. */
export function backendSectionSchema(
  entries: readonly SectionField[],
  name: string,
  only?: readonly string[],
): Schema<BackendFullSpec> {
  const all = propertiesOf(entries, 'backend')
  const names = only ?? Object.keys(all)
  const fields = Object.fromEntries(Object.entries(all).filter(([field]) => names.includes(field)))
  return object(name, fields, {
    rules: [atLeastOneOf(...Object.keys(fields))],
  }) as Schema<BackendFullSpec>
}

/** The spec of GatewayPolicy for a list of policy fields. */
export function policySpecSchema(entries: readonly SectionField[]): Schema<GatewayPolicySpec> {
  const traffic: Record<string, AnyProperty> = {
    phase: optional(policyPhase, {
      doc: 'When the settings apply; settings of the two phases never merge with each other.',
      default: 'PostRouting',
    }),
    ...propertiesOf(entries, 'traffic'),
  }
  const spec = object(
    'PolicySpec',
    {
      targetRefs: optional(
        list(policyTargetReference, { min: 1, max: 16 }),
        'What the policy applies to, by name.',
      ),
      targetSelectors: optional(
        list(policyTargetSelector, { min: 1, max: 16 }),
        'What the policy applies to, by label.',
      ),
      frontend: optional(
        object('Frontend', propertiesOf(entries, 'frontend')),
        'Incoming connections, access log and traces. Targets: Gateway.',
      ),
      traffic: optional(
        object('Traffic', traffic),
        'Requests. Targets: Gateway, ListenerSet (or one of their listeners), HTTPRoute, GRPCRoute (or one of their rules). The more specific target wins for each field.',
      ),
      backend: optional(
        backendSectionSchema(entries, 'BackendFull'),
        'Connections to backends. Targets: those of traffic, for every backend reached through them; Service (or a port of it); GatewayBackend (or a provider or MCP target of it).',
      ),
    },
    { rules: [exactlyOneOf('targetRefs', 'targetSelectors')] },
  )
  return spec as Schema<GatewayPolicySpec>
}
