import { list, optional, record, type Shape, text } from '../../base/shape.ts'
import { namedExpression } from '../../model/shapes.ts'
/** Version 1: what the user wrote. */
export interface AccessLogConfig {
  /** A line is written where it is true; always where absent. */
  readonly filter?: string
  readonly attributes?: {
    readonly remove?: readonly string[]
    readonly add?: readonly { readonly name: string; readonly expression: string }[]
  }
}

export const shape: Shape<AccessLogConfig> = record({
  filter: optional(text),
  attributes: optional(
    record<NonNullable<AccessLogConfig['attributes']>>({
      remove: optional(list(text)),
      add: optional(list(namedExpression)),
    }),
  ),
})
