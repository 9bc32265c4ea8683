/** Version 1. */
export interface DirectResponseConfig {
  /** 200..599. */
  readonly status: number
  /** No body where absent. */
  readonly body?: string
}
