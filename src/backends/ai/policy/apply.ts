import type { PolicyApply, Step } from '../../../policies/define.ts'
import { type BackendAiConfig, shape } from './config.ts'
import { AiStep } from './step.ts'

const apply: PolicyApply<BackendAiConfig> = {
  shape,
  bind: (config, callouts, secrets, host): Step => new AiStep(config, { callouts, secrets, host }),
}

export default apply
