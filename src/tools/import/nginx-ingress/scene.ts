/** What the readers of annotations get. */
import type { Conversion } from '../conversion.ts'
import type { RoutePlan } from '../plan.ts'

export interface AnnotationScene {
  readonly plan: RoutePlan
  readonly result: Conversion
  /** Name of the Ingress. */
  readonly name: string
}
