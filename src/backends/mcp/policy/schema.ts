/** `backend.mcp`: who may use what an MCP server offers. */
import { choice, type Infer, json, map, object, optional, required } from '../../../schema/field.ts'
import { atLeastOneOf } from '../../../schema/rules.ts'
import { sectionField } from '../../../schema/section-field.ts'
import {
  audiences,
  authorization,
  jwtMode,
  remoteJwks,
} from '../../../schema/shapes/authentication.ts'
import { shortString } from '../../../schema/strings.ts'

const mcpAuthentication = object('MCPAuthentication', {
  resourceMetadata: optional(
    map(json(), { max: 64 }),
    'Members of the protected resource metadata document (RFC 9728).',
  ),
  provider: optional(
    choice('McpIDP', { IdpA: 'identity provider A', IdpB: 'identity provider B' }),
    'Identity provider whose deviations are made up for.',
  ),
  issuer: optional(shortString, 'Value of the iss claim; not checked where unset.'),
  audiences: optional(
    audiences,
    'Values of which the aud claim must have one; any audience where unset.',
  ),
  jwks: required(remoteJwks, 'Keys that the issuer signs with.'),
  mode: optional(jwtMode, { doc: 'What happens without a valid token.', default: 'Strict' }),
})

const backendMcp = object(
  'BackendMCP',
  {
    authorization: optional(
      authorization,
      'Judged for each tool, prompt and resource: lists lose what fails, calls of it are refused.',
    ),
    authentication: optional(mcpAuthentication, 'Validates tokens of MCP clients.'),
  },
  { rules: [atLeastOneOf('authorization', 'authentication')] },
)
export type BackendMcpSpec = Infer<typeof backendMcp>

export const backendMcpField = sectionField({
  section: 'backend',
  field: 'mcp',
  schema: backendMcp,
  doc: 'Settings for MCP; in force on backends of type mcp only.',
})
