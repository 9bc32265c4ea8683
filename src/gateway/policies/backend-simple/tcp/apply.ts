import { type Infer, optional, record } from '../../../../ground/base/shape.ts'
import { keepalive, milliseconds } from '../../../../ground/model/shapes.ts'
import type { PolicyApply } from '../../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
export const shape = record({
  keepalive: optional(keepalive),
  /** Timeout for establishing a connection, including the TLS handshake. */
  connectTimeoutMs: optional(milliseconds),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: ({ keepalive, connectTimeoutMs }) => ({
    connection: {
      ...(keepalive && { keepalive }),
      ...(connectTimeoutMs !== undefined && { connectTimeoutMs }),
    },
  }),
}

export default apply
