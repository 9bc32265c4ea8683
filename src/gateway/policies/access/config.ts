import { type Infer, list, optional, record, text } from '../../../ground/base/shape.ts'
import { shape as extAuth } from '../ext-auth/config.ts'

/** The compiled form that proxies receive: one XAccessPolicy. */
export const shape = record({
  /** Expressions, one for each rule. If omitted, every request matches. */
  rules: optional(list(text)),
  /** The service that decides about matching requests. If omitted, only matching requests are allowed. */
  extAuth: optional(extAuth),
})
export type AccessConfig = Infer<typeof shape>
