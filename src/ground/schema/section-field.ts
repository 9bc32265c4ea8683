import type { FieldInfo, Schema } from './field.ts'

export type SectionName = 'frontend' | 'traffic' | 'backend'

/** One field of a section of GatewayPolicy. The spec of GatewayPolicy is assembled from a list of these. */
export interface SectionField<
  Section extends SectionName = SectionName,
  Field extends string = string,
  T = unknown,
> extends FieldInfo {
  readonly section: Section
  readonly field: Field
  readonly schema: Schema<T>
}
