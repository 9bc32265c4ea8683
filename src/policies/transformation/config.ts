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
