/** Version 1. */
export interface CsrfConfig {
  /** `scheme://host:port`, lower case, with the port always written. */
  readonly additionalOrigins: readonly string[]
}
