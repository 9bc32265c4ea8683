/** XAccessPolicy of kube-agentic-networking 0.1, with the default values of its CRD. */
import {
  choice,
  type Infer,
  list,
  object,
  optional,
  required,
  text,
} from '../../ground/schema/field.ts'
import { rule } from '../../ground/schema/rules.ts'
import { httpMethods } from '../../ground/schema/shapes/cors.ts'
import { portNumber, referenceName } from '../../ground/schema/shapes/references.ts'
import {
  groupName,
  kindName,
  plainHeaderName,
  sectionName,
  wildcardHostname,
} from '../../ground/schema/strings.ts'
import { externalAuth } from './gateway-api/filters.ts'

interface Target {
  readonly kind: string
}

const targetRefs = list(
  object('AccessPolicyTargetReference', {
    group: required(groupName, 'API group.'),
    kind: required(kindName, 'Kind.'),
    name: required(referenceName, 'Name.'),
    sectionName: optional(sectionName, 'Listener of a Gateway, or rule of a route.'),
  }),
  {
    min: 1,
    max: 10,
    rules: [
      rule<readonly Target[]>({
        message: 'All targetRefs must have the same Kind',
        holds: (refs) => refs.every(({ kind }) => kind === refs[0]?.kind),
      }),
    ],
  },
)

const source = object('AccessRuleSource', {
  type: optional(
    choice('AuthorizationSourceType', {
      ServiceAccount: 'the ServiceAccount of a Pod',
      SPIFFE: 'a SPIFFE id',
    }),
    'Which member is set. Any client if not set.',
  ),
  spiffe: optional(
    text({
      pattern: '^spiffe://[a-z0-9._-]+(?:/[A-Za-z0-9._-]+)*$',
      expects: 'a SPIFFE id such as spiffe://cluster.local/ns/default/sa/agent',
    }),
    'SPIFFE id in the certificate of the client.',
  ),
  serviceAccount: optional(
    object('AuthorizationSourceServiceAccount', {
      namespace: optional(text(), 'Namespace; that of the policy if not set.'),
      name: required(text(), 'Name.'),
    }),
    'ServiceAccount in the trust domain cluster.local, which the SPIFFE id of the client names.',
  ),
})

const pathMatch = object('AccessPathMatch', {
  type: optional(
    choice('AccessPathMatchType', {
      Exact: 'the whole path is equal',
      PathPrefix: 'the path begins with these segments',
      RegularExpression: 'the pattern matches the whole path',
    }),
    { doc: 'How value is compared.', fill: 'PathPrefix' },
  ),
  value: optional(text({ max: 1024 }), { doc: 'Path.', fill: '' }),
})

const headerMatch = object('AccessHeaderMatch', {
  type: optional(
    choice('AccessHeaderMatchType', {
      Exact: 'the value is equal',
      RegularExpression: 'the pattern matches the whole value',
    }),
    { doc: 'How value is compared.', fill: 'Exact' },
  ),
  name: required(plainHeaderName, 'Field name; case does not matter.'),
  value: required(text({ min: 1, max: 4096 }), 'Value or pattern.'),
})

/** Methods whose messages name an item. */
const namingMethods = [
  'prompts/get',
  'tools/call',
  'resources/subscribe',
  'resources/unsubscribe',
  'resources/read',
]

interface Method {
  readonly name: string
  readonly params?: readonly string[]
}

const method = object(
  'AccessMCPMethod',
  {
    name: required(
      choice('AccessMCPMethodName', {
        tools: 'all methods below tools/',
        prompts: 'all methods below prompts/',
        resources: 'all methods below resources/',
        'prompts/list': '',
        'tools/list': '',
        'resources/list': '',
        'resources/templates/list': '',
        'prompts/get': '',
        'tools/call': '',
        'resources/subscribe': '',
        'resources/unsubscribe': '',
        'resources/read': '',
      }),
      'Method, or a group of methods.',
    ),
    params: optional(
      list(text({ max: 20 }), { max: 10, unique: 'value' }),
      'Names of tools or prompts, or URIs of resources. Any if not set.',
    ),
  },
  {
    rules: [
      rule<Method>({
        message:
          'Params can only be specified for get, call, subscribe, unsubscribe, or read methods',
        holds: ({ name, params = [] }) => params.length === 0 || namingMethods.includes(name),
        at: 'params',
      }),
    ],
  },
)

const mcp = object('AccessMCPAttributes', {
  methods: optional(
    list(method, { max: 10, unique: { by: ['name'] } }),
    'Methods that are allowed. If not set, all are, unless mcpBaseProtocolMethodsOption is MATCH_BASE_PROTOCOL_METHODS.',
  ),
  mcpBaseProtocolMethodsOption: optional(
    choice('AccessMCPBaseProtocolMethods', {
      SKIP_BASE_PROTOCOL_METHODS: 'only the listed methods match',
      MATCH_BASE_PROTOCOL_METHODS: 'methods of sessions and tools/list match, too',
    }),
    {
      doc: 'Whether the methods that every session needs match.',
      fill: 'SKIP_BASE_PROTOCOL_METHODS',
    },
  ),
})

interface Authorization {
  readonly type: string
  readonly cel?: object
}

const authorization = object(
  'AccessAuthorizationRule',
  {
    type: required(
      choice('AuthorizationRuleType', {
        Inline: 'the fields below are compared',
        CEL: 'cel is evaluated for calls of tools, in addition to the other fields',
      }),
      'How the rule decides.',
    ),
    methods: optional(
      list(choice('AccessHTTPMethod', httpMethods), { max: 9, unique: 'value' }),
      'HTTP methods, one of which must match.',
    ),
    paths: optional(list(pathMatch, { max: 10 }), 'Paths, one of which must match.'),
    headers: optional(list(headerMatch, { max: 10 }), 'Headers, all of which must match.'),
    hosts: optional(
      list(wildcardHostname, { max: 10, unique: 'value' }),
      'Hosts, one of which must match.',
    ),
    ports: optional(
      list(portNumber, { max: 10, unique: 'value' }),
      'Ports of the gateway, one of which must match.',
    ),
    mcp: optional(mcp, 'Methods of MCP.'),
    cel: optional(
      object('AccessPolicyCELRule', {
        expression: required(text(), 'Expression that must be true.'),
      }),
      'Expression for calls of tools.',
    ),
  },
  {
    rules: [
      rule<Authorization>({
        message: "cel must be specified when type is set to 'CEL'",
        holds: ({ type, cel }) => type !== 'CEL' || cel !== undefined,
      }),
      rule<Authorization>({
        message: "cel must not be specified when type is set to 'Inline'",
        holds: ({ type, cel }) => type !== 'Inline' || cel === undefined,
      }),
    ],
  },
)

const accessRule = object('AccessRule', {
  name: required(
    text({
      min: 1,
      max: 63,
      pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
      expects: 'a lowercase DNS name',
    }),
    'Name.',
  ),
  source: optional(source, 'Who sends the request. Any client if not set.'),
  authorization: optional(authorization, 'What the source may do. Everything if not set.'),
})
export type AccessRule = Infer<typeof accessRule>

export const accessPolicySpec = object(
  'AccessPolicySpec',
  {
    targetRefs: required(targetRefs, 'Gateways, ListenerSets or routes, in the same namespace.'),
    action: required(
      choice('AccessPolicyAction', {
        Allow: 'a request must match a rule of every such policy',
        ExternalAuth: 'a service decides about requests that match a rule',
      }),
      'What rules do.',
    ),
    externalAuth: optional(externalAuth, 'The service that decides.'),
    rules: optional(
      list(accessRule, {
        max: 10,
        rules: [
          rule<readonly AccessRule[]>({
            message: 'AccessRule names must be unique',
            holds: (rules) => new Set(rules.map(({ name }) => name)).size === rules.length,
          }),
        ],
      }),
      'Rules. Every request matches if not set.',
    ),
  },
  {
    rules: [
      rule<{ readonly action: string; readonly externalAuth?: object }>({
        message: "externalAuth must be specified when action is set to 'ExternalAuth'",
        holds: ({ action, externalAuth: service }) =>
          action !== 'ExternalAuth' || service !== undefined,
      }),
    ],
  },
)
export type AccessPolicySpec = Infer<typeof accessPolicySpec>
