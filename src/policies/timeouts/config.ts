import { optional, record, type Shape } from '../../base/shape.ts'
import { milliseconds } from '../../model/shapes.ts'
/** Version 1. */
export interface TimeoutsConfig {
  /** Milliseconds from the first attempt to the last byte of the response; 0 = no limit. */
  readonly requestMs?: number
}

export const shape: Shape<TimeoutsConfig> = record({ requestMs: optional(milliseconds) })
