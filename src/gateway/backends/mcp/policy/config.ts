import { optional, record } from '../../../../ground/base/shape.ts'
import {
  type AuthorizationConfig,
  shape as authorization,
} from '../../../policies/authorization/rules.ts'
import { shape as authentication, type McpAuthenticationConfig } from '../auth/config.ts'
import { type CallsConfig, shape as calls } from './calls-config.ts'

/** Version 1 of `backend.mcp` as the proxy receives it. */
export interface BackendMcpConfig {
  readonly authorization?: AuthorizationConfig
  readonly authentication?: McpAuthenticationConfig
  /** Omitted if nothing is set for calls. */
  readonly calls?: CallsConfig
}

export const shape = record<BackendMcpConfig>({
  authorization: optional(authorization),
  authentication: optional(authentication),
  calls: optional(calls),
})
