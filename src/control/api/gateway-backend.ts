/** GatewayBackend: a destination of traffic. */
import { backendDefinitions } from '../../gateway/backends/definitions.ts'
import {
  type BackendSpec as BackendPolicies,
  backendSectionSchema,
} from '../../gateway/policies/section-schema.ts'
import {
  type AnyProperty,
  type Infer,
  object,
  optional,
  type Schema,
} from '../../ground/schema/field.ts'
import { exactlyOneOf } from '../../ground/schema/rules.ts'
import { conditions } from '../../ground/schema/shapes/conditions.ts'

type Definition = (typeof backendDefinitions)[number]

/** Exactly one of the fields that name a type of backend is set. */
export type GatewayBackendSpec = {
  readonly [D in Definition as D['field']]?: Infer<D['schema']>
} & { readonly policies?: BackendPolicies }

const fields: Record<string, AnyProperty> = {}
for (const { field, schema, doc } of backendDefinitions) fields[field] = optional(schema, doc)

// The CRD's published error message lists the names in this order, so keep these four first.
const names = new Set(['ai', 'static', 'dynamicForwardProxy', 'mcp', ...Object.keys(fields)])

export const gatewayBackendSpec = object(
  'BackendSpec',
  {
    ...fields,
    policies: optional(
      backendSectionSchema('BackendFull'),
      'Settings of connections to this backend. They override those of policies.',
    ),
  },
  { rules: [exactlyOneOf(...names)] },
) as Schema<GatewayBackendSpec>

export const gatewayBackendStatus = object('BackendStatus', {
  conditions: optional(conditions(8), 'Conditions of the backend, set by the controller.'),
})
