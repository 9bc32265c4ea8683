/** `mcp` of a GatewayBackend: MCP servers. */

import {
  boolean,
  choice,
  type Infer,
  integer,
  list,
  object,
  optional,
  required,
  text,
} from '../../../../ground/schema/field.ts'
import { hostText, withoutHost } from '../../../../ground/schema/host.ts'
import { atLeastOneOf, exactlyOneOf } from '../../../../ground/schema/rules.ts'
import { portNumber } from '../../../../ground/schema/shapes/references.ts'
import { labelSelector } from '../../../../ground/schema/shapes/selectors.ts'
import {
  longString,
  sectionName,
  shortString,
  tinyString,
} from '../../../../ground/schema/strings.ts'
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

const operationSelector = object('OpenAPIOperationSelector', {
  tags: optional(list(shortString, { min: 1, max: 64 }), 'Tags, of which the operation has one.'),
  pathPrefixes: optional(
    list(longString, { min: 1, max: 64 }),
    'Beginnings of path templates, in whole segments.',
  ),
  methods: optional(list(tinyString, { min: 1, max: 16 }), 'HTTP methods, such as GET.'),
  operations: optional(list(shortString, { min: 1, max: 256 }), 'Values of operationId.'),
})

const selectors = (about: string) => optional(list(operationSelector, { min: 1, max: 64 }), about)

const openApiTool = object('OpenAPITool', {
  operation: required(shortString, 'The operationId of the operation.'),
  name: optional(tinyString, 'Name of the tool. Default: the operationId.'),
  description: optional(
    text({ min: 1, max: 4096 }),
    'Description for models. Default: summary and description of the operation.',
  ),
})

const openApi = object('OpenAPITarget', {
  configMap: required(
    object('OpenAPIDocumentReference', {
      name: required(shortString, 'Name of a ConfigMap in the namespace of the backend.'),
      key: optional(shortString, {
        doc: 'Key of the document, which is JSON or YAML.',
        default: 'openapi.yaml',
      }),
    }),
    'The document: OpenAPI 3.0, 3.1 or 3.2, or Swagger 2.0.',
  ),
  include: selectors(
    'Operations that become tools; all if not set. An operation matches a selector if it has one of each list that is set.',
  ),
  exclude: selectors('Operations that do not become tools.'),
  tools: optional(
    list(openApiTool, { min: 1, max: 256, unique: { by: ['operation'] } }),
    'Other names and descriptions for tools.',
  ),
  maxResultSize: optional(integer({ min: 1024, max: 33_554_432 }), {
    doc: 'Bytes of a response that become the result; the rest is cut, and the result says so.',
    default: 262_144,
  }),
  outputSchemas: optional(boolean(), {
    doc: 'Whether tools have output schemas. Clients refuse results that do not match them.',
    default: false,
  }),
})

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
  openapi: optional(
    openApi,
    'The target is an HTTP API: the gateway serves its operations as tools. `path` is then the base path, by default that of the first server of the document; hosts in the document are ignored. Beyond the interface of agentgateway.',
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
      openapi: 'move host, port and openapi under static',
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
