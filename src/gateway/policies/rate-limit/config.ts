import {
  choice,
  count,
  flag,
  type Infer,
  list,
  optional,
  record,
  text,
} from '../../../ground/base/shape.ts'
import { calloutTarget, namedExpression } from '../../../ground/model/shapes.ts'

const counts = choice('requests', 'tokens')
export type LimitUnit = Infer<typeof counts>

const local = record({
  rate: count,
  unit: choice('Seconds', 'Minutes', 'Hours', 'Days', 'Months'),
  burst: count,
  counts,
  /** Expression; each of its values has a bucket of its own. */
  key: optional(text),
})
export type LocalLimit = Infer<typeof local>

const global = record({
  target: calloutTarget,
  domain: text,
  descriptors: list(
    record({
      counts,
      entries: list(namedExpression),
      /** Expression for the hits of a request. If omitted, one. */
      cost: optional(text),
      /** Expression for the limit that replaces that of the server. */
      limitOverride: optional(text),
    }),
  ),
  /** Whether requests pass if the server fails. */
  failsOpen: optional(flag),
})
export type GlobalLimit = Infer<typeof global>

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
export const shape = record({ local: list(local), global: optional(global) })
