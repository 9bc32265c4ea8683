import type { PolicyApply } from '../../define.ts'
import type { BackendTcpConfig } from './config.ts'

const apply: PolicyApply<BackendTcpConfig> = {
  bind: ({ keepalive, connectTimeoutMs }) => ({
    connection: {
      ...(keepalive && { keepalive }),
      ...(connectTimeoutMs !== undefined && { connectTimeoutMs }),
    },
  }),
}

export default apply
