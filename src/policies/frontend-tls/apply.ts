import type { PolicyApply } from '../define.ts'
import type { FrontendTlsConfig } from './config.ts'

const apply: PolicyApply<FrontendTlsConfig> = {
  bind: (tls) => ({ client: { tls } }),
}

export default apply
