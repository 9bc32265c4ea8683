import { optional, record } from '../../../../ground/base/shape.ts'
import {
  type AuthorizationConfig,
  shape as authorization,
} from '../../../policies/authorization/rules.ts'
import { shape as authentication, type McpAuthenticationConfig } from '../auth/config.ts'

/** Version 1 of `backend.mcp` as the proxy receives it. */
export interface BackendMcpConfig {
  readonly authorization?: AuthorizationConfig
  readonly authentication?: McpAuthenticationConfig
}

export const shape = record<BackendMcpConfig>({
  authorization: optional(authorization),
  authentication: optional(authentication),
})
