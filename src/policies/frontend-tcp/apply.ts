import type { PolicyApply } from '../define.ts'
import { type FrontendTcpConfig, shape } from './config.ts'

const apply: PolicyApply<FrontendTcpConfig> = {
  shape,
  bind: ({ keepalive }) => ({ client: { keepalive } }),
}

export default apply
