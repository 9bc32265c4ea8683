/** What the readers of annotations get. */
import type { Conversion } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import type { RoutePlan } from '../plan.ts'

/** The annotation of the nginx Ingress controller with this name. */
export type Read = (name: string) => SourceField

/** The items of a text that separates them by commas. */
export const listOf = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

export interface AnnotationScene {
  readonly plan: RoutePlan
  readonly result: Conversion
  /** Name of the Ingress. */
  readonly name: string
}
