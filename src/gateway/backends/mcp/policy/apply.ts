/** Applies `backend.mcp` policies. */
import type { Callouts, SecretValues } from '../../../../ground/exchange/exchange.ts'
import type { McpRules } from '../../../../ground/exchange/mcp.ts'
import type { PolicyHost } from '../../../../ground/exchange/rate-limits.ts'
import { AuthorizationRules } from '../../../policies/authorization/rules.ts'
import type { PolicyApply, Step } from '../../../policies/define.ts'
import { McpAuthenticator } from '../auth/authenticator.ts'
import { CallPolicy } from './call-policy.ts'
import { type BackendMcpConfig, shape } from './config.ts'

/** The step of a `backend.mcp` policy. MCP backends find it with `mcpStepOf` and use its members. */
class McpStep implements Step {
  readonly authentication: McpAuthenticator | undefined
  /** Authorization rules for items, evaluated like `traffic.authorization`. */
  readonly mcp: McpRules | undefined
  /** Identifies the settings other than rules. */
  readonly otherSettings: string
  /** The settings for calls; undefined if there are none. */
  readonly calls: CallPolicy | undefined

  constructor(
    { authentication, authorization, calls }: BackendMcpConfig,
    callouts: Callouts,
    secrets: SecretValues,
    host: PolicyHost,
  ) {
    this.authentication =
      authentication && new McpAuthenticator(authentication, callouts, secrets, host)
    this.mcp = authorization && new AuthorizationRules([authorization])
    this.otherSettings = JSON.stringify({ authentication, calls })
    this.calls = calls && new CallPolicy(calls, callouts, secrets, host)
  }

  dispose(): void {
    this.calls?.dispose()
  }
}

const apply: PolicyApply<BackendMcpConfig> = {
  shape,
  bind: (config, callouts, secrets, host) => new McpStep(config, callouts, secrets, host),
}

export default apply

/** Returns the step of the `backend.mcp` policy, if there is one. */
export function mcpStepOf({ steps }: { readonly steps: readonly Step[] }): McpStep | undefined {
  return steps.find(isMcpStep)
}

const isMcpStep = (step: Step): step is McpStep => step instanceof McpStep
