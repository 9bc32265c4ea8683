import type { PolicyApply, Step } from '../../../policies/define.ts'
import { type BackendMcpConfig, shape } from './config.ts'
import { McpStep } from './step.ts'

const apply: PolicyApply<BackendMcpConfig> = {
  shape,
  bind: (config, callouts, _secrets, host): Step => new McpStep(config, callouts, host),
}

export default apply
