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
  duration,
  longString,
  sectionName,
  shortString,
  tinyString,
} from '../../../../ground/schema/strings.ts'
import { backendSectionSchema } from '../../../policies/section-schema.ts'
import { failureMode, prefixMode, toolSearch, toolSelection, virtualServers } from './offer.ts'

const policies = backendSectionSchema('BackendWithMCP', [
  'tcp',
  'tunnel',
  'tls',
  'http',
  'auth',
  'mcp',
])

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

const documentReference = object('OpenAPIDocumentReference', {
  name: required(shortString, 'Name of a ConfigMap in the namespace of the backend.'),
  key: optional(shortString, {
    doc: 'Key of the document, which is JSON or YAML.',
    default: 'openapi.yaml',
  }),
})

const openApiReference = object('OpenAPIReference', {
  ref: required(
    longString,
    'The part of `$ref` before `#`, such as `common.yaml`. It is only a name: the gateway fetches nothing.',
  ),
  configMap: required(documentReference, 'The document that it stands for.'),
})

const openApi = object(
  'OpenAPITarget',
  {
    configMap: optional(
      documentReference,
      'The document: OpenAPI 3.0, 3.1 or 3.2, or Swagger 2.0.',
    ),
    path: optional(
      withoutHost(longString),
      'Path at which the server of the target serves the document.',
    ),
    cacheDuration: optional(duration, {
      doc: 'Time after which a document at `path` is fetched again.',
      default: '5m',
    }),
    references: optional(
      list(openApiReference, { min: 1, max: 32, unique: { by: ['ref'] } }),
      'Other documents to which `$ref` may refer. Operations that need any further document are omitted.',
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
    maxPages: optional(integer({ min: 1, max: 100 }), {
      doc: 'Pages of a result that the gateway joins.',
      default: 1,
    }),
    outputSchemas: optional(boolean(), {
      doc: 'Whether tools have output schemas. Clients refuse results that do not match them.',
      default: false,
    }),
  },
  { rules: [exactlyOneOf('configMap', 'path')] },
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
  openapi: optional(
    openApi,
    'The target is an HTTP API: the gateway serves its operations as tools. `path` is then the base path, by default that of the first server of the document; hosts in the document are ignored. Beyond the interface of agentgateway.',
  ),
  endpoints: optional(
    list(
      object('McpEndpoint', {
        host: required(hostText, 'Host of the server.'),
        port: required(portNumber, 'Port of the server.'),
      }),
      { min: 1, max: 16 },
    ),
    'More servers that are equal to that of `host` and `port`. The gateway balances requests over them; a session stays at its server. All of them have the path, policies, `Host` and certificate name of the target. Beyond the interface of agentgateway.',
  ),
  policies: optional(
    policies,
    'Settings of this target. They override those of the backend and of policies.',
  ),
})

const stdioVariable = object(
  'StdioVariable',
  {
    name: required(
      text({
        min: 1,
        max: 256,
        pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
        expects: 'letters, digits and _',
      }),
      'Name of the variable. Names that begin with LD_, DYLD_ or GLIBC_ are refused, because they would change the programs that confine the server.',
    ),
    value: optional(text({ max: 32_768 }), 'The value.'),
    secretRef: optional(
      object(
        'StdioSecretReference',
        {
          name: required(shortString, 'Name of a Secret in the namespace of the backend.'),
          key: required(shortString, 'Key of the value.'),
        },
        { refersTo: 'Secret' },
      ),
      'An entry of a Secret that has the value.',
    ),
  },
  { rules: [exactlyOneOf('value', 'secretRef')] },
)

const stdioLimits = object('StdioLimits', {
  memory: optional(integer({ min: 16_777_216, max: 1_099_511_627_776 }), {
    doc: 'Maximum memory of a server with its children.',
    unit: 'bytes',
    default: 1_073_741_824,
  }),
  openFiles: optional(integer({ min: 16, max: 1_048_576 }), {
    doc: 'Maximum number of files that each process may have open.',
    default: 1024,
  }),
  processes: optional(integer({ min: 1, max: 65_536 }), {
    doc: 'Maximum number of processes of a server, including itself. If the kernel enforces the limit, threads count, too.',
    default: 256,
  }),
  instances: optional(integer({ min: 1, max: 10_000 }), {
    doc: 'Maximum number of server processes of this target at a time in one proxy.',
    default: 64,
  }),
  timeout: optional(duration, {
    doc: 'Maximum time from a request to the response of the server.',
    default: '60s',
  }),
  messageSize: optional(integer({ min: 1024, max: 67_108_864 }), {
    doc: 'Maximum length of a line that the server writes.',
    unit: 'bytes',
    default: 4_194_304,
  }),
})

const stdioTarget = object('StdioTarget', {
  command: required(
    list(text({ min: 1, max: 4096 }), { min: 1, max: 256 }),
    'The program and its arguments, without a shell. A program without a slash is searched in PATH.',
  ),
  env: optional(
    list(stdioVariable, { min: 1, max: 256, unique: { by: ['name'] } }),
    'Environment of the server. It also gets PATH, HOME, LANG, LC_ALL and TZ of the gateway, and no other variables.',
  ),
  workingDirectory: optional(
    text({ min: 1, max: 4096, pattern: '^/', expects: 'an absolute path' }),
    'Working folder. If not set, each process gets an empty folder, which is removed when the process ends.',
  ),
  scope: optional(
    choice('StdioScope', {
      Session: 'each session has a process of its own',
      Principal: 'the sessions of one principal share a process; sessions without one do not',
      Shared:
        'all sessions share one process, which must keep no data of one client that another could see',
    }),
    {
      doc: 'Which sessions share a process of the server, and so the data that it keeps.',
      default: 'Session',
    },
  ),
  network: optional(boolean(), {
    doc: 'Whether the server may use the network. If the platform cannot isolate it, the server always has network access, and the condition StdioServers says so.',
    default: false,
  }),
  limits: optional(stdioLimits, 'Limits of the server.'),
})

const mcpTargetSelector = object(
  'McpTargetSelector',
  {
    name: required(sectionName, 'Name of the target, for sectionName of policies.'),
    selector: optional(mcpSelector, 'Services of the cluster.'),
    static: optional(mcpTarget, 'A fixed destination; for Services use selector.'),
    stdio: optional(
      stdioTarget,
      'A command that is an MCP server over standard input and output. The gateway starts it if that is enabled: `--stdio-servers` of `sluice run`, `stdio` of GatewayParameters. Beyond the interface of agentgateway.',
    ),
    tools: optional(
      toolSelection,
      'Which tools of the target clients get, and how they are presented. Beyond the interface of agentgateway.',
    ),
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
    rules: [exactlyOneOf('selector', 'static', 'stdio')],
    advice: {
      command: 'write command under stdio',
      cmd: 'write command under stdio: the program and its arguments in one list',
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
  prefixMode: optional(prefixMode, {
    doc: 'Which names of tools and prompts begin with the name of their target if there are several targets.',
    default: 'Always',
  }),
  failureMode: optional(failureMode, {
    doc: 'What happens if one of several targets fails.',
    default: 'FailOpen',
  }),
  toolSearch: optional(
    toolSearch,
    'Lists only `search_tools`, `call_tool` and pinned tools, so that models read only the definitions that they need. Beyond the interface of agentgateway.',
  ),
  virtualServers: optional(
    virtualServers,
    'Named subsets of targets and tools. The candidates for a request are those whose path is the end of its path or, if there is none, those without path. The first candidate whose `when` is true is used; if none is, the request gets 404. Beyond the interface of agentgateway.',
  ),
})
export type McpSpec = Infer<typeof mcpSchema>
