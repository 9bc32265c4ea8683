/** Version 1; a field that the user did not set is absent. Sizes in bytes, times in milliseconds. */
export interface FrontendHttpConfig {
  readonly maxBufferBytes?: number
  readonly maxHeaders?: number
  readonly idleTimeoutMs?: number
  readonly http2?: {
    readonly streamWindowBytes?: number
    readonly connectionWindowBytes?: number
    readonly maxFrameBytes?: number
    readonly keepaliveIntervalMs?: number
    readonly keepaliveTimeoutMs?: number
  }
}
