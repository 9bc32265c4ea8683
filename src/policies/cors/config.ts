import { count, flag, list, record, type Shape, text } from '../../base/shape.ts'
/** Version 1. Lists are as the user wrote them, names of headers and methods included. */
export interface CorsConfig {
  /**
   * `*`; or `scheme://host:port`, lower case, with the port always written, whose host may be `*`
   * or begin with `*.`.
   */
  readonly origins: readonly string[]
  readonly credentials: boolean
  readonly methods: readonly string[]
  readonly requestHeaders: readonly string[]
  readonly responseHeaders: readonly string[]
  /** Seconds. */
  readonly maxAge: number
}

export const shape: Shape<CorsConfig> = record({
  origins: list(text),
  credentials: flag,
  methods: list(text),
  requestHeaders: list(text),
  responseHeaders: list(text),
  maxAge: count,
})
