import { flag, type Infer, list, record, text } from '../../../ground/base/shape.ts'
import { guard } from '../../backends/ai/policy/config.ts'

const pathGuard = record({
  /** Paths of what the guard reads, as the user wrote them. */
  paths: list(text),
  guard,
})

/** The compiled form that proxies receive. */
export const shape = record({
  request: list(pathGuard),
  response: list(pathGuard),
  /** Whether bodies whose type is not JSON pass unread. */
  passesOther: flag,
})
export type JsonGuardConfig = Infer<typeof shape>
export type PathGuardConfig = Infer<typeof pathGuard>
