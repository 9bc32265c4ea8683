import { integer, optional, record, type Shape, text } from '../../base/shape.ts'
/** Version 1. */
export interface DirectResponseConfig {
  /** 200..599. */
  readonly status: number
  /** No body where absent. */
  readonly body?: string
}

export const shape: Shape<DirectResponseConfig> = record({
  status: integer(200, 599),
  body: optional(text),
})
