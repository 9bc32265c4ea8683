/**
 * The one table of variables: their fields, by when each one has a value, and at which points expressions run.
 * The compiler, the checks of policies and docs/expressions.md are made from it.
 */

/** The fields of each variable or field, by name; undefined if it may have any field. */
export type Variables = ReadonlyMap<string, Variables | undefined>

/** What has to happen before a field has a value, and how docs/expressions.md says it. */
export const stages = {
  process: 'always, also without a request',
  connection: 'with every connection of a client',
  arrival: 'with every request',
  authentication: 'after a policy for JWT, basic authentication or API keys',
  extAuth: 'after external authorization',
  extProc: 'after an external processor',
  body: 'with every request to which an expression that reads the body applies',
  routing: 'once the route of the request is known',
  backend: 'once its backend is resolved, after the policies of the route',
  modelRequest: 'once the request to a language model is read, after the policies of the route',
  modelResponse: 'once a language model responds',
  mcpMessage: 'once the message of an MCP client is read, after the policies of the route',
  a2aMessage: 'once the request of an A2A client is read, after the policies of the route',
  mcpItem: 'for each tool, prompt or resource that an MCP client lists or uses',
  response: 'once there is a response',
  end: 'once the exchange is over',
  never: 'never in this version',
} as const
type ExpressionStage = keyof typeof stages

/** A variable or field: by when it has a value, and its fields if they are fixed. */
export interface VariableEntry {
  readonly stage: ExpressionStage
  readonly fields?: ReadonlyMap<string, VariableEntry>
  /** What users can write where the variable has no value. */
  readonly instead?: string
  /** Names that no value of the field has, in lower case, and what to write instead. */
  readonly absent?: ReadonlyMap<string, string>
}

const some = (stage: ExpressionStage, names: string) =>
  names.split(' ').map((name): [string, VariableEntry] => [name, { stage }])

const fieldsOf = (...entries: (readonly [string, VariableEntry])[][]) => new Map(entries.flat())

/** Fields of costs, in USD, and of prices, in USD per million tokens. */
const costFields =
  'total input output cacheRead cacheWrite reasoning inputAudio outputAudio inputImage outputImage calls'
const rateFields =
  'input output cacheRead cacheReadAudio cacheWrite cacheWrite1h reasoning inputAudio outputAudio inputImage outputImage'

const items: readonly [string, VariableEntry][] = [
  [
    'tool',
    {
      stage: 'mcpItem',
      fields: fieldsOf(some('mcpItem', 'name target arguments'), some('never', 'result error')),
    },
  ],
  ['prompt', { stage: 'mcpItem', fields: fieldsOf(some('mcpItem', 'name target arguments')) }],
  ['resource', { stage: 'mcpItem', fields: fieldsOf(some('mcpItem', 'name uri target')) }],
]

/** Fields of the PROXY header that a load balancer sends at the start of a connection. */
const proxyProtocol = some(
  'connection',
  'version authority uniqueId awsVpcEndpointId azurePrivateEndpointLinkId gcpPscConnectionId tlvs',
)

const route: VariableEntry = {
  stage: 'routing',
  fields: fieldsOf(some('routing', 'namespace name rule')),
  instead: 'use phase PostRouting',
}

/** Names that are not header fields of requests, although other gateways have them there. */
const noHeaders: ReadonlyMap<string, string> = new Map([
  ['host', 'use request.host'],
  [':authority', 'use request.host'],
  [':method', 'use request.method'],
  [':path', 'use request.pathAndQuery'],
  [':scheme', 'use request.scheme'],
])

const ofBody = 'use json(request.body)'
const ofResponse = 'use transformation.response, the access log or spans'

/** Every variable of the gateway. One that is not set reads as null. */
export const variableTable: ReadonlyMap<string, VariableEntry> = new Map<string, VariableEntry>([
  [
    'request',
    {
      stage: 'arrival',
      fields: fieldsOf(
        some('arrival', 'method uri host scheme path pathAndQuery version'),
        [['headers', { stage: 'arrival', absent: noHeaders }]],
        some('body', 'body bodyPrefix'),
        some('arrival', 'startTime'),
        some('end', 'endTime'),
      ),
    },
  ],
  [
    'response',
    {
      stage: 'response',
      fields: fieldsOf(some('response', 'code grpcStatus headers body bodyPrefix')),
      instead: ofResponse,
    },
  ],
  [
    'source',
    {
      stage: 'connection',
      fields: fieldsOf(
        some('connection', 'address port rawAddress rawPort connectHeaders'),
        [['proxyProtocol', { stage: 'connection', fields: fieldsOf(proxyProtocol) }]],
        some('arrival', 'identity subjectAltNames issuer subject subjectCn spiffeId certificate'),
        some('never', 'unverifiedWorkload'),
      ),
    },
  ],
  [
    'destination',
    {
      stage: 'connection',
      fields: fieldsOf(some('connection', 'address port'), some('never', 'hostname')),
    },
  ],
  [
    'backend',
    {
      stage: 'backend',
      fields: fieldsOf(some('backend', 'name type protocol')),
      instead: 'apply the policy to the routes or rules of this backend',
    },
  ],
  ['basicAuth', { stage: 'authentication', fields: fieldsOf(some('authentication', 'username')) }],
  ['jwt', { stage: 'authentication' }],
  ['apiKey', { stage: 'authentication' }],
  ['identity', { stage: 'authentication' }],
  ['extauthz', { stage: 'extAuth' }],
  ['extproc', { stage: 'extProc' }],
  [
    'env',
    {
      stage: 'process',
      fields: fieldsOf(some('process', 'podName namespace'), some('arrival', 'gateway')),
    },
  ],
  [
    'proxy',
    {
      stage: 'arrival',
      fields: new Map<string, VariableEntry>([
        ['gateway', { stage: 'arrival', fields: fieldsOf(some('arrival', 'namespace name')) }],
        ['listener', { stage: 'arrival', fields: fieldsOf(some('arrival', 'name')) }],
        ['route', route],
      ]),
    },
  ],
  ['metadata', { stage: 'never' }],
  [
    'llm',
    {
      stage: 'modelRequest',
      // docs/ai.md explains the fields.
      fields: fieldsOf(
        some('modelRequest', 'requestModel'),
        some('modelResponse', 'responseModel'),
        some('modelRequest', 'provider streaming'),
        some('modelResponse', 'serviceTier inputTokens outputTokens totalTokens'),
        some('modelResponse', 'providerInputTokens countTokens cachedInputTokens'),
        some('modelResponse', 'cacheCreationInputTokens reasoningTokens inputTextTokens'),
        some('modelResponse', 'inputImageTokens inputAudioTokens outputTextTokens'),
        some('modelResponse', 'outputImageTokens outputAudioTokens'),
        some('modelResponse', 'providerTotalTokens costStatus'),
        [
          ['cost', { stage: 'modelResponse', fields: fieldsOf(some('modelResponse', costFields)) }],
          [
            'costRates',
            { stage: 'modelResponse', fields: fieldsOf(some('modelResponse', rateFields)) },
          ],
        ],
        some('modelResponse', 'timeToFirstToken timePerOutputToken'),
        some('modelRequest', 'params prompt'),
        some('modelResponse', 'completion toolCalls'),
      ),
      instead: ofBody,
    },
  ],
  ['llmRequest', { stage: 'modelRequest', instead: ofBody }],
  [
    'mcp',
    {
      stage: 'mcpMessage',
      fields: fieldsOf(
        some('mcpMessage', 'method methodName sessionId'),
        some('mcpItem', 'target'),
        items as [string, VariableEntry][],
      ),
      instead: 'use authorization or rateLimit of backend.mcp, or request.headers["mcp-name"]',
    },
  ],
  ['mcpGuardrails', { stage: 'mcpMessage' }],
  [
    'a2a',
    {
      stage: 'a2aMessage',
      // docs/a2a.md explains the fields.
      fields: fieldsOf(
        some('a2aMessage', 'method binding agent taskId contextId messageId tenant version'),
      ),
      instead: 'use backend.a2a.authorization',
    },
  ],
])

/** The names of all variables and of their fields. */
export const gatewayVariables: Variables = namesOf(variableTable)

function namesOf(table: ReadonlyMap<string, VariableEntry>): Variables {
  return new Map([...table].map(([name, { fields }]) => [name, fields && namesOf(fields)]))
}

/** A point at which expressions run. */
export interface ExpressionPoint {
  /** How docs/expressions.md names the point. */
  readonly title: string
  /** How messages say it. */
  readonly when: string
  /** What has happened by then, or may have. */
  readonly has: readonly ExpressionStage[]
}

/** Stages before the route is selected, if the body is not read. */
const bodiless = [
  'process',
  'connection',
  'arrival',
  'authentication',
  'extAuth',
  'extProc',
] as const
const early = ['process', 'connection', 'arrival', 'body', 'authentication'] as const
const late = [...early, 'extAuth', 'extProc', 'routing'] as const
const answered = [...late, 'backend', 'modelRequest', 'modelResponse'] as const
const beforeRouting = 'before the route is selected'

/**
 * Every point at which expressions run. Policies of phase PreRouting run before those of phase PostRouting,
 * and the policies of a phase in the order of the registry.
 */
export const expressionPoints = {
  process: {
    title: '`tracing.resources`',
    when: 'without a request',
    has: ['process'],
  },
  connection: {
    title: '`frontend.networkAuthorization`',
    when: 'when a client connects, before TLS and HTTP',
    has: ['process', 'connection'],
  },
  sampling: {
    title: '`tracing.randomSampling` and `.clientSampling`',
    when: 'when a request arrives',
    has: ['process', 'connection', 'arrival'],
  },
  credentials: {
    title: '`location.expression` of authentication policies',
    when: 'when the credentials of a client are read',
    has: ['process', 'connection', 'arrival'],
  },
  earlyExtAuth: {
    title: '`extAuth`, and the conditions of variants, in phase PreRouting',
    when: `in extAuth of phase PreRouting, ${beforeRouting}`,
    has: early,
  },
  earlyAuthorization: {
    title: '`authorization` and `extProc` in phase PreRouting',
    when: beforeRouting,
    has: [...early, 'extAuth'],
  },
  earlyTransformation: {
    title: '`transformation.request` in phase PreRouting',
    when: beforeRouting,
    has: [...early, 'extAuth', 'extProc'],
  },
  earlyAuthAnswer: {
    title:
      '`extAuth.http.responseMetadata` and `extAuth.cache.ttl` in phase PreRouting; `response` is that of the service',
    when: `in extAuth of phase PreRouting, ${beforeRouting}`,
    has: [...early, 'extAuth', 'response'],
  },
  traffic: {
    title: 'all other expressions of `traffic`',
    when: 'in policies of the route, before the request is forwarded',
    has: late,
  },
  authAnswer: {
    title:
      '`extAuth.http.responseMetadata` and `extAuth.cache.ttl`; `response` is that of the service',
    when: 'in policies of the route, before the request is forwarded',
    has: [...late, 'response'],
  },
  modelRequest: {
    title: '`rateLimit.global` with `unit: Tokens`',
    when: 'when token limits are checked, before the request is sent to a model',
    has: [...late, 'backend', 'modelRequest'],
  },
  budget: {
    title: 'GatewayBudget',
    when: 'when budgets are checked, before the request is sent to a model, or the call of a tool to its server',
    has: [...late, 'backend', 'modelRequest', 'mcpMessage', 'mcpItem'],
  },
  endpoint: {
    title: '`backend.sessionAffinity`',
    when: 'when the endpoint of a backend is chosen',
    has: [...bodiless, 'routing', 'backend'],
  },
  backendCredentials: {
    title: '`backend.auth`',
    when: 'when credentials are added to a request for a backend',
    has: [...bodiless, 'routing', 'backend', 'modelRequest', 'mcpMessage', 'mcpItem', 'a2aMessage'],
  },
  mcpServer: {
    title: '`virtualServers[].when` of MCP backends',
    when: 'when the virtual server of an MCP client is chosen',
    has: [...bodiless, 'routing', 'backend'],
  },
  mcpItem: {
    title: '`authorization`, `rateLimit` and `approval` of `backend.mcp`',
    when: 'in rules about MCP tools, prompts and resources, and in limits and approvals of calls',
    has: [...bodiless, 'routing', 'backend', 'mcpMessage', 'mcpItem'],
  },
  a2aMessage: {
    title: '`backend.a2a.authorization`',
    when: 'in rules about requests of A2A clients',
    has: [...bodiless, 'routing', 'backend', 'a2aMessage'],
  },
  health: {
    title: '`backend.health.unhealthyCondition`',
    when: 'when a response is judged, before policies change it',
    has: [...late, 'backend', 'modelRequest', 'response'],
  },
  response: {
    title: '`transformation.response` and `extProc.responseAttributes`',
    when: 'when a response is changed',
    has: [...answered, 'mcpMessage', 'mcpItem', 'a2aMessage', 'response'],
  },
  observation: {
    title: '`accessLog` and attributes of spans',
    when: 'in logs and spans',
    has: [...answered, 'mcpMessage', 'mcpItem', 'a2aMessage', 'response', 'end'],
  },
} as const satisfies Readonly<Record<string, ExpressionPoint>>
export type ExpressionPointName = keyof typeof expressionPoints
