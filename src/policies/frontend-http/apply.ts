import type { PolicyApply } from '../define.ts'
import type { FrontendHttpConfig } from './config.ts'

const apply: PolicyApply<FrontendHttpConfig> = {
  bind: (http) => ({ client: { http } }),
}

export default apply
