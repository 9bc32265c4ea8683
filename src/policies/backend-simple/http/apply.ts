import type { PolicyApply } from '../../define.ts'
import { type BackendHttpConfig, shape } from './config.ts'

const apply: PolicyApply<BackendHttpConfig> = {
  shape,
  bind: ({ version, requestTimeoutMs }) => ({
    connection: {
      ...(version && { version: version === 'HTTP2' ? '2' : '1.1' }),
      ...(requestTimeoutMs !== undefined && { requestTimeoutMs }),
    },
  }),
}

export default apply
