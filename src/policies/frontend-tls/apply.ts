import type { PolicyApply } from '../define.ts'
import { type FrontendTlsConfig, shape } from './config.ts'

const apply: PolicyApply<FrontendTlsConfig> = {
  shape,
  bind: (tls) => ({ client: { tls } }),
}

export default apply
