/** GatewayBackend: a destination of traffic. */
import { vendorFields, vendorNames } from '../backends/ai/providers/index.ts'
import { registeredPolicies } from '../policies/registry.ts'
import { choice, type Infer, list, object, optional, required } from '../schema/field.ts'
import { atLeastOneOf, exactlyOneOf, rule } from '../schema/rules.ts'
import { conditions } from '../schema/shapes/conditions.ts'
import { portNumber } from '../schema/shapes/references.ts'
import { labelSelector } from '../schema/shapes/selectors.ts'
import { longString, sectionName, shortString } from '../schema/strings.ts'
import { backendSectionSchema } from './policy-spec.ts'

const staticBackend = object('StaticBackend', {
  host: required(shortString, 'Host name or address that requests are sent to.'),
  port: required(portNumber, 'Port that requests are sent to.'),
})

const oneVendor = exactlyOneOf(...vendorNames)

const providerFields = {
  ...vendorFields,
  host: optional(shortString, "Host that requests are sent to; the vendor's own where unset."),
  port: optional(portNumber, 'Port that requests are sent to; 443 where unset.'),
  path: optional(
    longString,
    "URL path of provider requests, in place of the vendor's own for each format.",
  ),
} as const

const llmProvider = object('LLMProvider', providerFields, { rules: [oneVendor] })
export type LlmProvider = Infer<typeof llmProvider>

const simple = ['tcp', 'tls', 'http', 'auth']
const backendWithAi = backendSectionSchema(registeredPolicies, 'BackendWithAI', [...simple, 'ai'])
const backendWithMcp = backendSectionSchema(registeredPolicies, 'BackendWithMCP', [
  ...simple,
  'mcp',
])

const namedLlmProvider = object(
  'NamedLLMProvider',
  {
    name: required(sectionName, 'Name of the provider, for sectionName of policies.'),
    ...providerFields,
    policies: optional(
      backendWithAi,
      'Settings of this provider; they win over those of the backend and of policies.',
    ),
  },
  { rules: [oneVendor] },
)

const priorityGroup = object('PriorityGroup', {
  providers: required(
    list(namedLlmProvider, { min: 1, max: 32, unique: { by: ['name'] } }),
    'Providers of equal priority; healthy ones get more.',
  ),
})

type Groups = readonly { readonly providers: readonly { readonly name: string }[] }[]

// An API server can afford this rule only over lists of names, one a group: comparing every
// provider with every other would exceed its cost limit.
const namesDifferAcrossGroups = rule<Groups>({
  message: 'provider names must be unique across groups',
  cel: '[self.map(g, g.providers.map(p, p.name))].all(groups, groups.all(names, names.all(n, groups.exists_one(others, n in others))))',
  holds: (groups) => {
    const names = groups.flatMap((group) => [...new Set(group.providers.map(({ name }) => name))])
    return new Set(names).size === names.length
  },
})

const aiBackend = object(
  'AIBackend',
  {
    provider: optional(llmProvider, 'The one provider.'),
    groups: optional(
      list(priorityGroup, { min: 1, max: 32, rules: [namesDifferAcrossGroups] }),
      'Providers by priority: a later group is used while no provider of the earlier ones is fit.',
    ),
  },
  { rules: [exactlyOneOf('provider', 'groups')] },
)
export type AiBackend = Infer<typeof aiBackend>

const mcpSelector = object(
  'McpSelector',
  {
    namespaces: optional(
      labelSelector,
      'Namespaces that are searched; only that of the backend where unset.',
    ),
    services: optional(labelSelector, 'Services that are targets.'),
  },
  { rules: [atLeastOneOf('namespaces', 'services')] },
)
export type McpSelector = Infer<typeof mcpSelector>

const mcpTarget = object('McpTarget', {
  host: required(shortString, 'Host of the MCP server.'),
  port: required(portNumber, 'Port of the MCP server.'),
  path: optional(longString, 'Path of the MCP endpoint. Default: /mcp, or /sse for SSE.'),
  protocol: optional(
    choice('MCPProtocol', {
      StreamableHTTP: 'streamable HTTP',
      SSE: 'HTTP with server-sent events (the older transport)',
    }),
    { doc: 'Transport.', default: 'StreamableHTTP' },
  ),
  policies: optional(
    backendWithMcp,
    'Settings of this target; they win over those of the backend and of policies.',
  ),
})

const mcpTargetSelector = object(
  'McpTargetSelector',
  {
    name: required(sectionName, 'Name of the target, for sectionName of policies.'),
    selector: optional(mcpSelector, 'Services of the cluster.'),
    static: optional(mcpTarget, 'A fixed destination; for Services use selector.'),
  },
  { rules: [exactlyOneOf('selector', 'static')] },
)

const mcpBackend = object('MCPBackend', {
  targets: required(
    list(mcpTargetSelector, { min: 1, max: 32, unique: { by: ['name'] } }),
    'MCP servers behind this backend.',
  ),
  sessionRouting: optional(
    choice('SessionRouting', {
      Stateful: 'all requests of a session go to one replica',
      Stateless: 'requests have no session',
    }),
    { doc: 'Where the requests of a session go.', default: 'Stateful' },
  ),
})
export type McpBackend = Infer<typeof mcpBackend>

export const gatewayBackendSpec = object(
  'BackendSpec',
  {
    static: optional(staticBackend, 'A fixed host and port.'),
    ai: optional(aiBackend, 'Language models.'),
    mcp: optional(mcpBackend, 'MCP servers.'),
    dynamicForwardProxy: optional(
      object('DynamicForwardProxyBackend', {}),
      'Whatever the Host header or, for TLS, the SNI names. Clients choose the destination: protect the route with access controls.',
    ),
    policies: optional(
      backendSectionSchema(registeredPolicies, 'BackendFull'),
      'Settings of connections to this backend; they win over those of policies.',
    ),
  },
  { rules: [exactlyOneOf('ai', 'static', 'dynamicForwardProxy', 'mcp')] },
)
export type GatewayBackendSpec = Infer<typeof gatewayBackendSpec>

export const gatewayBackendStatus = object('BackendStatus', {
  conditions: optional(conditions(8), 'What the controller found out about the backend.'),
})
