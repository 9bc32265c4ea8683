/** `mcp` of a GatewayBackend: MCP servers. */

import {
  choice,
  type Infer,
  list,
  object,
  optional,
  required,
} from '../../../../ground/schema/field.ts'
import { hostText, withoutHost } from '../../../../ground/schema/host.ts'
import { atLeastOneOf, exactlyOneOf } from '../../../../ground/schema/rules.ts'
import { portNumber } from '../../../../ground/schema/shapes/references.ts'
import { labelSelector } from '../../../../ground/schema/shapes/selectors.ts'
import { longString, sectionName } from '../../../../ground/schema/strings.ts'
import { backendSectionSchema } from '../../../policies/section-schema.ts'

const policies = backendSectionSchema('BackendWithMCP', ['tcp', 'tls', 'http', 'auth', 'mcp'])

const mcpSelector = object(
  'McpSelector',
  {
    namespaces: optional(
      labelSelector,
      'Namespaces that are searched; only that of the backend if not set.',
    ),
    services: optional(labelSelector, 'Services that are targets.'),
  },
  { rules: [atLeastOneOf('namespaces', 'services')] },
)

const mcpTarget = object('McpTarget', {
  host: required(hostText, 'Host of the MCP server.'),
  port: required(portNumber, 'Port of the MCP server.'),
  path: optional(
    withoutHost(longString),
    'Path of the MCP endpoint. Default: /mcp, or /sse for SSE.',
  ),
  protocol: optional(
    choice('MCPProtocol', {
      StreamableHTTP: 'streamable HTTP',
      SSE: 'HTTP with server-sent events (the older transport)',
    }),
    { doc: 'Transport.', default: 'StreamableHTTP' },
  ),
  policies: optional(
    policies,
    'Settings of this target. They override those of the backend and of policies.',
  ),
})

const bridged =
  'a target is an MCP server over HTTP: run one beside the gateway and name it under static'

const mcpTargetSelector = object(
  'McpTargetSelector',
  {
    name: required(sectionName, 'Name of the target, for sectionName of policies.'),
    selector: optional(mcpSelector, 'Services of the cluster.'),
    static: optional(mcpTarget, 'A fixed destination; for Services use selector.'),
    pinning: optional(
      choice('McpPinning', {
        Off: 'changes are recorded only',
        Warn: 'the condition ToolsApproved of the backend names changes that are not approved',
        Block: 'clients also do not get, and cannot use, what is not approved',
      }),
      {
        doc: 'What happens if a server changes a tool, prompt or resource that it has listed, or adds one (`sluice tools`). Versions that were listed first are approved. Beyond the interface of agentgateway.',
        default: 'Off',
      },
    ),
  },
  {
    rules: [exactlyOneOf('selector', 'static')],
    advice: {
      stdio: `${bridged} (a bridge such as supergateway or mcp-proxy)`,
      openapi: `${bridged} (a server that is made from the document, such as with FastMCP)`,
      mcp: 'write host, port and path under static',
      sse: 'write host, port and path under static, with protocol: SSE',
      host: 'write host, port and path under static',
    },
  },
)

export const mcpSchema = object('MCPBackend', {
  targets: required(
    list(mcpTargetSelector, { min: 1, max: 32, unique: { by: ['name'] } }),
    'MCP servers behind this backend.',
  ),
  sessionRouting: optional(
    choice('SessionRouting', {
      Stateful: 'all requests of a session go to one replica',
      Stateless: 'requests have no session',
    }),
    { doc: 'Whether the requests of a session are sent to one replica.', default: 'Stateful' },
  ),
})
export type McpSpec = Infer<typeof mcpSchema>
