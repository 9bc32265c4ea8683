import type { PolicyApply, Step } from '../../policies/define.ts'
import type { BackendAiConfig } from './config.ts'
import { AiStep } from './step.ts'

const apply: PolicyApply<BackendAiConfig> = {
  bind: (config, callouts, secrets, host): Step => new AiStep(config, { callouts, secrets, host }),
}

export default apply
