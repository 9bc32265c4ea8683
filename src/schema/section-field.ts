import type { FieldInfo, Schema } from './field.ts'

export type SectionName = 'frontend' | 'traffic' | 'backend'

/**
 * One field of frontend, traffic or backend. The spec of GatewayPolicy is assembled from a list of
 * these, so that a policy is one folder and one line of that list.
 */
export interface SectionField<
  Section extends SectionName = SectionName,
  Field extends string = string,
  T = unknown,
> extends FieldInfo {
  readonly section: Section
  readonly field: Field
  readonly schema: Schema<T>
}

/** Declares a field of a section; keeps the literal names for the types of the spec. */
export function sectionField<const Section extends SectionName, const Field extends string, T>(
  definition: SectionField<Section, Field, T>,
): SectionField<Section, Field, T> {
  return definition
}
