import { optional, record, type Shape } from '../../base/shape.ts'
import type { HeaderChanges } from '../../model/resources.ts'
import { headerChanges } from '../../model/shapes.ts'

/** Version 1. A half that the user left out changes nothing. */
export interface HeaderModifiersConfig {
  readonly request?: HeaderChanges
  readonly response?: HeaderChanges
}

export const shape: Shape<HeaderModifiersConfig> = record({
  request: optional(headerChanges),
  response: optional(headerChanges),
})
