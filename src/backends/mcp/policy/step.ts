/** `backend.mcp` bound for requests. */
import type { ConnectionSettings } from '../../../exchange/connection.ts'
import type { Callouts } from '../../../exchange/exchange.ts'
import type { McpRules } from '../../../exchange/mcp.ts'
import type { PolicyHost } from '../../../exchange/rate-limits.ts'
import { AuthorizationRules } from '../../../policies/authorization/rules.ts'
import type { Step } from '../../../policies/define.ts'
import { McpAuthenticator } from '../auth/authenticator.ts'
import type { BackendMcpConfig } from './config.ts'

/**
 * The data plane finds it among the steps of an MCP backend, or of one of its targets, and asks it;
 * elsewhere it does nothing, because the policy has no effect on other backends.
 */
export class McpStep implements Step {
  /** Nothing is settled for connections. */
  readonly connection: ConnectionSettings = {}
  readonly authentication: McpAuthenticator | undefined
  /** What may be used, and is shown in lists: judged as requests are by `traffic.authorization`. */
  readonly mcp: McpRules | undefined

  constructor(
    { authentication, authorization }: BackendMcpConfig,
    callouts: Callouts,
    host: PolicyHost,
  ) {
    this.authentication = authentication && new McpAuthenticator(authentication, callouts, host)
    this.mcp = authorization && new AuthorizationRules([authorization])
  }
}

/** The step of the policy among those that hold at a place; undefined where there is none. */
export function mcpStepOf({ steps }: { readonly steps: readonly Step[] }): McpStep | undefined {
  return steps.find((step): step is McpStep => step instanceof McpStep)
}
