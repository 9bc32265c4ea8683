import type { PolicyApply } from '../define.ts'
import { type FrontendHttpConfig, shape } from './config.ts'

const apply: PolicyApply<FrontendHttpConfig> = {
  shape,
  bind: (http) => ({ client: { http } }),
}

export default apply
