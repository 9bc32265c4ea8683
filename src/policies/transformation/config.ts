import { list, optional, record, type Shape, text } from '../../base/shape.ts'
import { namedExpression } from '../../model/shapes.ts'
/** Version 1. A half that the user left out changes nothing. */
export interface TransformationConfig {
  readonly request?: TransformConfig
  readonly response?: TransformConfig
}

/** Carried out in this order; each expression sees what those before it have changed. */
export interface TransformConfig {
  readonly add: readonly HeaderExpression[]
  readonly set: readonly HeaderExpression[]
  readonly remove: readonly string[]
  readonly body?: string
}

export interface HeaderExpression {
  /** A field name, or a pseudo-header that this half has. */
  readonly name: string
  readonly expression: string
}

const transform: Shape<TransformConfig> = record({
  add: list(namedExpression),
  set: list(namedExpression),
  remove: list(text),
  body: optional(text),
})

export const shape: Shape<TransformationConfig> = record({
  request: optional(transform),
  response: optional(transform),
})
