import type { PolicyApply } from '../../define.ts'
import { type BackendTcpConfig, shape } from './config.ts'

const apply: PolicyApply<BackendTcpConfig> = {
  shape,
  bind: ({ keepalive, connectTimeoutMs }) => ({
    connection: {
      ...(keepalive && { keepalive }),
      ...(connectTimeoutMs !== undefined && { connectTimeoutMs }),
    },
  }),
}

export default apply
