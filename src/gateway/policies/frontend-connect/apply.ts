import {
  choice,
  count,
  type Infer,
  list,
  optional,
  port,
  record,
} from '../../../ground/base/shape.ts'
import { milliseconds } from '../../../ground/model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. 0 ms means no limit. */
const shape = record({
  mode: choice('Deny', 'Route', 'Tunnel'),
  ports: optional(list(port)),
  idleTimeoutMs: milliseconds,
  maxDurationMs: milliseconds,
  maxTunnels: optional(count),
  matchesServerName: optional(choice(true)),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: (connect) => ({ client: { connect } }),
}

export default apply
