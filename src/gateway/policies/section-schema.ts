/** Schemas of the policy sections, made from the schemas of the registered policies. */
import {
  type AnyProperty,
  type Infer,
  object,
  optional,
  type Schema,
} from '../../ground/schema/field.ts'
import { atLeastOneOf } from '../../ground/schema/rules.ts'
import type { SectionName } from '../../ground/schema/section-field.ts'
import { withVariants } from './conditional.ts'
import type { PolicyDefinition } from './define.ts'
import { registeredPolicies } from './registry.ts'

type PolicyEntry = (typeof registeredPolicies)[number]

export type SectionSpec<Section extends SectionName> = {
  readonly [E in Extract<PolicyEntry, { section: Section }> as E['field']]?: Infer<E['schema']>
}

export type BackendSpec = SectionSpec<'backend'>

/** The fields of one section as schema properties. */
export function sectionProperties(of: SectionName): Record<string, AnyProperty> {
  const properties: Record<string, AnyProperty> = {}
  const definitions: readonly PolicyDefinition[] = registeredPolicies
  for (const definition of definitions) {
    const { section, field, schema, ...info } = definition
    const whole = definition.conditional === undefined ? schema : withVariants(definition)
    if (section === of) properties[field] = optional<unknown>(whole, info)
  }
  return properties
}

/** Schema of the section `backend`. `only` lists the fields that a kind of backend supports. */
export function backendSectionSchema(name: string, only?: readonly string[]): Schema<BackendSpec> {
  const all = Object.entries(sectionProperties('backend'))
  const fields = Object.fromEntries(all.filter(([field]) => only?.includes(field) ?? true))
  return object(name, fields, {
    rules: [atLeastOneOf(...Object.keys(fields))],
  }) as Schema<BackendSpec>
}
