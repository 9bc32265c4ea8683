import { list, record, type Shape, text } from '../../base/shape.ts'
/** Version 1. */
export interface CsrfConfig {
  /** `scheme://host:port`, lower case, with the port always written. */
  readonly additionalOrigins: readonly string[]
}

export const shape: Shape<CsrfConfig> = record({ additionalOrigins: list(text) })
