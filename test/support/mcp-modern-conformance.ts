/** The server that the modern scenarios of the official conformance suite want to test. */
import { createHmac } from 'node:crypto'
import { nothing, prompts, readResource, resources, tools } from './mcp-conformance-items.ts'
import {
  type ModernAnswer,
  type ModernError,
  type ModernRequest,
  ModernServer,
} from './mcp-modern-server.ts'

type Json = Record<string, unknown>

const prefix = 'io.modelcontextprotocol/'
const text = (value: string) => ({ content: [{ type: 'text', text: value }] })
const failure = (code: number, message: string, data?: unknown, status = 400): ModernError => ({
  status,
  error: { code, message, ...(data !== undefined && { data }) },
})

const elicit = (message: string, properties: Json) => ({
  method: 'elicitation/create',
  params: {
    message,
    requestedSchema: { type: 'object', properties, required: Object.keys(properties) },
  },
})
const sample = (question: string) => ({
  method: 'sampling/createMessage',
  params: {
    messages: [{ role: 'user', content: { type: 'text', text: question } }],
    maxTokens: 100,
  },
})
const roots = { method: 'roots/list', params: {} }
const aName = elicit('What is your name?', { name: { type: 'string' } })

const seal = (state: string) =>
  `${state}.${createHmac('sha256', 'conformance').update(state).digest('hex')}`

/** The state that was sealed, or undefined. */
const unseal = (sealed: unknown): string | undefined => {
  const state = String(sealed).split('.')[0] ?? ''
  return seal(state) === sealed ? state : undefined
}

/** What a tool gets of the client. */
interface Round {
  readonly responses: Readonly<Record<string, Json>>
  readonly state: unknown
  readonly capabilities: Json
}

const ask = (inputRequests: Json, requestState?: string) => ({
  resultType: 'input_required',
  inputRequests,
  ...(requestState !== undefined && { requestState }),
})

/** Tools that need several rounds, without the first part of their names. */
const rounds: Readonly<Record<string, (round: Round) => Json | ModernError>> = {
  elicitation: ({ responses }) => {
    const { user_name: given } = responses
    if (typeof given !== 'object' || given === null) return ask({ user_name: aName })
    return text(`Hello, ${(given.content as Json)?.name}!`)
  },
  sampling: ({ responses: { capital_question: given } }) =>
    given === undefined
      ? ask({ capital_question: sample('What is the capital of France?') })
      : text(JSON.stringify(given)),
  list_roots: ({ responses: { client_roots: given } }) =>
    given === undefined ? ask({ client_roots: roots }) : text(JSON.stringify(given)),
  request_state: ({ responses, state }) => {
    const confirm = elicit('Please confirm', { ok: { type: 'boolean' } })
    if (responses.confirm === undefined) return ask({ confirm }, seal('confirm'))
    return unseal(state) === 'confirm' ? text('state-ok') : failure(-32602, 'wrong requestState')
  },
  multiple_inputs: ({ responses, state }) => {
    const asked = { user_name: aName, greeting: sample('Generate a greeting'), client_roots: roots }
    const isComplete = Object.keys(asked).every((key) => key in responses)
    if (!isComplete) return ask(asked, seal('multiple'))
    return unseal(state) === 'multiple' ? text('done') : failure(-32602, 'wrong requestState')
  },
  multi_round: ({ responses, state }) => {
    const color = elicit('Step 2: What is your favorite color?', { color: { type: 'string' } })
    const reached = unseal(state)
    if (reached === 'one' && responses.step1 !== undefined)
      return ask({ step2: color }, seal('two'))
    if (reached === 'two' && responses.step2 !== undefined) return text('done')
    return ask(
      { step1: elicit('Step 1: What is your name?', { name: { type: 'string' } }) },
      seal('one'),
    )
  },
  tampered_state: ({ state }) => {
    if (state === undefined)
      return ask({ confirm: elicit('Sure?', { ok: { type: 'boolean' } }) }, seal('s'))
    return unseal(state) === 's' ? text('done') : failure(-32602, 'requestState was changed')
  },
  capabilities: ({ capabilities }) =>
    ask({
      ...('sampling' in capabilities && { question: sample('What?') }),
      ...('elicitation' in capabilities && { user_name: aName }),
    }),
}

const roundOf = ({ params }: ModernRequest): Round => {
  const given = params.inputResponses
  const meta = (params._meta ?? {}) as Json
  return {
    responses: (typeof given === 'object' && given !== null ? given : {}) as Round['responses'],
    state: params.requestState,
    capabilities: (meta[`${prefix}clientCapabilities`] ?? {}) as Json,
  }
}

/** Tools about the protocol itself. */
const diagnostics: Readonly<Record<string, ModernAnswer>> = {
  test_missing_capability: (request) =>
    'sampling' in roundOf(request).capabilities
      ? text('fine')
      : failure(-32021, 'sampling is needed', { requiredCapabilities: { sampling: {} } }),
  test_streaming_elicitation: (request, { send }) => {
    send(progress(request))
    return ask({ user_name: aName })
  },
  test_logging_tool: ({ params }, { send }) => {
    const meta = (params._meta ?? {}) as Json
    const message = { level: 'info', data: 'working' }
    if (meta[`${prefix}logLevel`] !== undefined)
      send({ jsonrpc: '2.0', method: 'notifications/message', params: message })
    return text('done')
  },
  test_tool_with_progress: (request, { send }) => {
    for (const share of [0, 50, 100]) send(progress(request, share))
    return text('done')
  },
  test_custom_headers: (request) => checkRegion(request) ?? text('fine'),
}

function progress({ params }: ModernRequest, share = 50): object {
  const { progressToken } = (params._meta ?? {}) as Json
  const method = 'notifications/progress'
  return { jsonrpc: '2.0', method, params: { progressToken, progress: share, total: 100 } }
}

/** The header of an annotated argument must agree with it. */
function checkRegion({ params, headers }: ModernRequest): ModernError | undefined {
  const { region } = (params.arguments ?? {}) as { region?: string }
  const sent = headers['mcp-param-region']
  const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(String(sent)) ?? []
  const bytes = Buffer.from(encoded ?? '', 'base64')
  const isValid = encoded === undefined || bytes.toString('base64') === encoded
  const value = encoded === undefined ? sent : bytes.toString()
  return isValid && value === region
    ? undefined
    : failure(-32020, 'Mcp-Param-Region does not agree')
}

const regional = {
  type: 'object',
  properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
}

const schemas: Readonly<Record<string, unknown>> = { test_custom_headers: regional }
const byRounds = Object.keys(rounds).map((name) => `test_input_required_result_${name}`)
const simple = Object.keys(tools).filter(
  (name) => !/sampling|elicitation|logging|reconnect/.test(name),
)
const toolNames = [...new Set([...simple, ...byRounds, ...Object.keys(diagnostics)])]

const call: ModernAnswer = (request, stream) => {
  const name = String(request.params.name)
  const diagnostic = diagnostics[name]
  if (diagnostic !== undefined) return diagnostic(request, stream)
  const round = rounds[name.replace('test_input_required_result_', '')]
  if (byRounds.includes(name) && round !== undefined) return round(roundOf(request))
  const tool = simple.includes(name) ? tools[name] : undefined
  if (tool === undefined) return failure(-32602, `Unknown tool: ${name}`)
  return tool.call(
    (request.params.arguments ?? {}) as Json,
    undefined as never,
    undefined as never,
  ) as Json
}

const promptOf: ModernAnswer = (request) => {
  const name = String(request.params.name)
  if (name === 'test_input_required_result_prompt') {
    const { user_context: given } = roundOf(request).responses
    const context = elicit('What context should the prompt use?', { context: { type: 'string' } })
    const messages = [{ role: 'user', content: { type: 'text', text: JSON.stringify(given) } }]
    return given === undefined ? ask({ user_context: context }) : { messages }
  }
  const prompt = prompts[name]
  if (prompt === undefined) return failure(-32602, `Unknown prompt: ${name}`)
  return { messages: prompt.get((request.params.arguments ?? {}) as Json) }
}

const hints = { ttlMs: 60_000, cacheScope: 'public' }

const resourceOf: ModernAnswer = ({ params }) => {
  try {
    return { ...readResource(String(params.uri)), ...hints }
  } catch {
    return failure(-32602, 'Resource not found', { uri: params.uri })
  }
}

export const modernConformanceServer = (): ModernServer =>
  new ModernServer({
    capabilities: {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: {},
      completions: {},
    },
    answers: {
      'tools/list': () => ({
        tools: toolNames.map((name) => ({
          name,
          description: tools[name]?.description ?? name,
          inputSchema: schemas[name] ?? tools[name]?.inputSchema ?? nothing,
        })),
        ...hints,
      }),
      'tools/call': call,
      'prompts/list': () => ({
        prompts: [
          ...Object.entries(prompts).map(([name, { description, arguments: args }]) => ({
            name,
            description,
            ...(args && { arguments: args }),
          })),
          { name: 'test_input_required_result_prompt', description: 'Asks for a context.' },
        ],
        ...hints,
      }),
      'prompts/get': promptOf,
      'resources/list': () => ({
        resources: resources.map(({ uri, name, mimeType }) => ({ uri, name, mimeType })),
        ...hints,
      }),
      'resources/templates/list': () => ({
        resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template' }],
        ...hints,
      }),
      'resources/read': resourceOf,
      'completion/complete': () => ({
        completion: { values: ['paris', 'park', 'party'], total: 150, hasMore: false },
      }),
    },
  })
