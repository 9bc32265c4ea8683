import { record, type Shape } from '../../base/shape.ts'
import type { CalloutTarget } from '../../exchange/exchange.ts'
import { calloutTarget } from '../../model/shapes.ts'

/** Version 1. */
export interface ExtProcConfig {
  readonly target: CalloutTarget
}

export const shape: Shape<ExtProcConfig> = record({ target: calloutTarget })
