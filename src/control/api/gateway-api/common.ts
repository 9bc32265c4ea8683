/** Shapes that several Gateway API kinds share (Gateway API 1.6). */

import { gatewayGroup } from '../../../ground/model/api-names.ts'
import {
  choice,
  type Infer,
  integer,
  jsonObject,
  list,
  map,
  object,
  optional,
  required,
  text,
} from '../../../ground/schema/field.ts'
import { rule } from '../../../ground/schema/rules.ts'
import { portNumber, referenceName } from '../../../ground/schema/shapes/references.ts'
import {
  groupName,
  kindName,
  namespaceName,
  sectionName,
  wildcardHostname,
} from '../../../ground/schema/strings.ts'

/** Controllers write the status and manifests do not, so any object is accepted. */
export const status = optional(jsonObject(), 'What controllers found out.')

const refRule = rule<{ readonly group?: string; readonly kind?: string; readonly port?: number }>({
  message:
    'must have port for Service reference; for a GatewayBackend, write group: sluice.dev and kind: GatewayBackend',
  holds: (ref) =>
    (ref.group ?? '') !== '' || (ref.kind ?? 'Service') !== 'Service' || ref.port !== undefined,
  at: 'port',
})

const backendFields = {
  group: optional(groupName, { doc: 'API group; empty for a Service.', fill: '' }),
  kind: optional(kindName, { doc: 'Kind.', fill: 'Service' }),
  name: required(referenceName, 'Name.'),
  namespace: optional(namespaceName, 'Namespace; that of the route if not set.'),
  port: optional(portNumber, 'Port; required for a Service.'),
} as const

/** BackendObjectReference with the defaults that the upstream CRD writes. */
export const backendObjectRef = object('BackendObjectReference', backendFields, {
  rules: [refRule],
})

export const weightedFields = {
  ...backendFields,
  weight: optional(integer({ min: 0, max: 1_000_000 }), { doc: 'Share of requests.', fill: 1 }),
} as const

export const weightedBackendRules = [refRule]

/** BackendRef: a weighted reference without filters. */
export const backendRef = object('BackendRef', weightedFields, { rules: weightedBackendRules })
export type BackendRef = Infer<typeof backendRef>

export const parentRef = object('ParentReference', {
  group: optional(groupName, { doc: 'API group.', fill: gatewayGroup }),
  kind: optional(kindName, { doc: 'Kind.', fill: 'Gateway' }),
  namespace: optional(namespaceName, 'Namespace; that of the route if not set.'),
  name: required(referenceName, 'Name.'),
  sectionName: optional(sectionName, 'Listener or entry; all if not set.'),
  port: optional(portNumber, 'Port of the listeners; all if not set.'),
})
export type ParentRef = Infer<typeof parentRef>

const parentIdentity = (ref: ParentRef): string =>
  JSON.stringify([ref.group ?? gatewayGroup, ref.kind ?? 'Gateway', ref.namespace ?? '', ref.name])

const parentPart = (ref: ParentRef): string =>
  JSON.stringify([ref.sectionName ?? '', ref.port ?? 0])

const partKind = (ref: ParentRef): string =>
  JSON.stringify([(ref.sectionName ?? '') === '', (ref.port ?? 0) === 0])

function sameParents(refs: readonly ParentRef[]): readonly (readonly ParentRef[])[] {
  return [...Map.groupBy(refs, parentIdentity).values()]
}

const parentRefs = list(parentRef, {
  max: 32,
  rules: [
    rule<readonly ParentRef[]>({
      message:
        'sectionName or port must be specified when parentRefs includes 2 or more references to the same parent',
      holds: (refs) => sameParents(refs).every((group) => new Set(group.map(partKind)).size <= 1),
    }),
    rule<readonly ParentRef[]>({
      message:
        'sectionName or port must be unique when parentRefs includes 2 or more references to the same parent',
      holds: (refs) =>
        sameParents(refs).every((group) => new Set(group.map(parentPart)).size === group.length),
    }),
  ],
})

const fromAllOrNone = choice('GatewayDefaultScope', { All: 'every route', None: 'no route' })

/** Fields that all route kinds have. */
export const routeFields = {
  parentRefs: optional(parentRefs, 'Gateways and ListenerSets that the route wants to attach to.'),
  useDefaultGateways: optional(fromAllOrNone, {
    doc: 'Attaches to default Gateways (experimental).',
    support: 'pending',
  }),
} as const

/** Hostnames of HTTPRoutes and GRPCRoutes. */
export const requestHostnames = optional(
  list(wildcardHostname, { max: 16 }),
  'Hosts; those of the listener if not set.',
)

export const defaultScope = fromAllOrNone

/** Rule names must differ within a route. */
export const uniqueRuleNames = rule<readonly { readonly name?: string }[]>({
  message: 'rule name must be unique within the route',
  holds: (rules) => {
    const names = rules.flatMap(({ name }) => (name === undefined ? [] : [name]))
    return new Set(names).size === names.length
  },
})

/** Limits the number of matches in all rules of a route together. */
export const matchBudget = rule<readonly { readonly matches?: readonly unknown[] }[]>({
  message: 'the total number of matches across all rules in a route must be at most 128',
  holds: (rules) => rules.reduce((sum, { matches }) => sum + (matches?.length ?? 0), 0) <= 128,
})

export const annotationValue = text({ max: 4096 })
export const tlsOptions = map(annotationValue, { max: 16 })

/** A reference in the same namespace, with group and kind. */
export const localRef = object('LocalObjectReference', {
  group: required(groupName, 'API group; empty for the core group.'),
  kind: required(kindName, 'Kind.'),
  name: required(referenceName, 'Name.'),
})

/** A reference to an object in the same or another namespace. */
export const objectRef = object('ObjectReference', {
  group: required(groupName, 'API group; empty for the core group.'),
  kind: required(kindName, 'Kind.'),
  name: required(referenceName, 'Name.'),
  namespace: optional(namespaceName, 'Namespace; that of the referring object if not set.'),
})
export type ObjectReference = Infer<typeof objectRef>

export const secretRef = object('SecretObjectReference', {
  group: optional(groupName, { doc: 'API group.', fill: '' }),
  kind: optional(kindName, { doc: 'Kind.', fill: 'Secret' }),
  name: required(referenceName, 'Name.'),
  namespace: optional(namespaceName, 'Namespace; that of the Gateway if not set.'),
})
export type SecretObjectRef = Infer<typeof secretRef>
