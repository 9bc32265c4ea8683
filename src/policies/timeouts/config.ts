/** Version 1. */
export interface TimeoutsConfig {
  /** Milliseconds from the first attempt to the last byte of the response; 0 = no limit. */
  readonly requestMs?: number
}
