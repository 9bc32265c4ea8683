import type { PolicyApply } from '../define.ts'
import type { FrontendTcpConfig } from './config.ts'

const apply: PolicyApply<FrontendTcpConfig> = {
  bind: ({ keepalive }) => ({ client: { keepalive } }),
}

export default apply
