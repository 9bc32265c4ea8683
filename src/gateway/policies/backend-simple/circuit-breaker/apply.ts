import { count, type Infer, optional, record } from '../../../../ground/base/shape.ts'
import type { PolicyApply } from '../../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({
  maxParallelRequests: optional(count),
  maxParallelRetries: optional(count),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: ({ maxParallelRequests, maxParallelRetries }, _callouts, _secrets, { policy }) => ({
    connection: {
      circuit: {
        name: policy,
        ...(maxParallelRequests !== undefined && { maxRequests: maxParallelRequests }),
        ...(maxParallelRetries !== undefined && { maxRetries: maxParallelRetries }),
      },
    },
  }),
}

export default apply
