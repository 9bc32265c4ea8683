/** Version 1: what the user wrote. */
export interface AccessLogConfig {
  /** A line is written where it is true; always where absent. */
  readonly filter?: string
  readonly attributes?: {
    readonly remove?: readonly string[]
    readonly add?: readonly { readonly name: string; readonly expression: string }[]
  }
}
