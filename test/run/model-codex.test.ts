/** Requests of Codex to vendors without the responses format: tools in namespaces, and searches. */
import type { ServerResponse } from 'node:http'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import type { VendorCall } from '../support/vendors/vendor.ts'
import { calls, type ToolCall } from '../support/vendors/vendor-a.ts'
import { callsC } from '../support/vendors/vendor-c.ts'
import { callsD } from '../support/vendors/vendor-d.ts'
import { converses } from '../support/vendors/vendor-f.ts'

const chatOnly = { custom: { formats: [{ type: 'Completions' }] } }
const fleet = useFleet(({ at, region }) => [
  reached('a', { ...chatOnly, ...at('a') }),
  reached('c', { vendorC: {}, ...at('c') }),
  reached('d', { vendorD: {}, ...at('d') }, { auth: { key: 'AIzaKey' } }),
  reached('f', { vendorF: { region }, ...at('f') }),
])
beforeEach(() => fleet.forget())

const ways = [
  { vendor: 'a', model: 'some-model', answer: calls },
  { vendor: 'c', model: 'claude-sonnet-4-5', answer: callsC },
  { vendor: 'd', model: 'gemini-2.5-pro', answer: callsD },
  {
    vendor: 'f',
    model: 'anthropic.claude-sonnet-4-5-v1:0',
    answer: (call: ToolCall) => converses({ call }),
  },
] as const

type Input = OpenAI.Responses.ResponseInputItem
const responses = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 }).responses

const parameters = { type: 'object', properties: { input: { type: 'string' } } }
const made = (type: string, name: string, description: string) =>
  type === 'function'
    ? { type, name, description, parameters, strict: false }
    : { type, name, description }

/** Tools of Codex: those of MCP servers are in namespaces, and a function has the name that one of them would get. */
const tools = [
  made('function', 'mcp__tracker__list', 'A plain function.'),
  {
    type: 'namespace',
    name: 'mcp__tracker',
    description: 'Tools of the tracker.',
    tools: [
      made('function', 'list', 'Lists the issues.'),
      made('custom', 'note', 'Writes a note.'),
    ],
  },
  {
    type: 'namespace',
    name: 'agents',
    description: 'Agents.',
    tools: [made('function', 'list', 'Lists the agents.')],
  },
  { type: 'tool_search', execution: 'client', description: 'Finds tools.', parameters },
  { type: 'web_search', external_web_access: false },
] as unknown as OpenAI.Responses.Tool[]

const additional = {
  type: 'additional_tools',
  role: 'developer',
  tools: [
    {
      type: 'namespace',
      name: 'functions',
      description: 'More.',
      tools: [made('custom', 'exec', 'Runs code.')],
    },
  ],
} as unknown as Input
const user: Input = { role: 'user', content: 'List the issues.' }

/** Returns the name of a tool with this description in a request, whatever its format. */
function nameOfTool(body: unknown, description: string): string | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  const { name, description: own } = body as Record<string, unknown>
  if (typeof name === 'string' && typeof own === 'string' && own.startsWith(description))
    return name
  for (const part of Object.values(body)) {
    const found = nameOfTool(part, description)
    if (found !== undefined) return found
  }
  return undefined
}

const called = [
  {
    description: 'Lists the issues.',
    type: 'function_call',
    namespace: 'mcp__tracker',
    name: 'list',
  },
  { description: 'Lists the agents.', type: 'function_call', namespace: 'agents', name: 'list' },
  {
    description: 'Writes a note.',
    type: 'custom_tool_call',
    namespace: 'mcp__tracker',
    name: 'note',
  },
  { description: 'Runs code.', type: 'custom_tool_call', namespace: 'functions', name: 'exec' },
  {
    description: 'A plain function.',
    type: 'function_call',
    namespace: undefined,
    name: 'mcp__tracker__list',
  },
]

describe.each(ways)('Codex with the models of vendor $vendor', ({ vendor, model, answer }) => {
  it.each(called)(
    'calls $name of $namespace and continues, whole and streamed',
    async ({ description, type, namespace, name }) => {
      const input = { input: 'text' }
      const callIt = (call: VendorCall, response: ServerResponse) => {
        const sent = nameOfTool(call.body, description) ?? 'missing'
        answer({ id: 'call_1', name: sent, input })(call, response)
      }
      fleet.vendors[vendor].next.push(callIt, callIt)
      const request = { model, tools, input: [additional, user], tool_choice: 'auto' as const }
      const whole = await responses(vendor).create(request)
      const streamed = await responses(vendor).stream(request).finalResponse()
      for (const { output } of [whole, streamed]) {
        const call = output.find(
          (item) => item.type === type,
        ) as OpenAI.Responses.ResponseFunctionToolCall
        expect(call).toMatchObject({ name, ...(namespace && { namespace }) })
        if (namespace === undefined) expect(call).not.toHaveProperty('namespace')
        const result = { type: `${type}_output`, call_id: call.call_id, output: 'done' } as Input
        const history = [additional, user, ...(output as Input[]), result]
        const next = await responses(vendor).create({ ...request, input: history })
        expect(next.output_text).toMatch(/^Hello from/)
        const last = fleet.lastCall(vendor)
        const sent = nameOfTool(last?.body, description)
        expect(sent).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
        expect(last?.text.split(`"name":"${sent}"`).length).toBeGreaterThan(2)
      }
    },
  )

  it('sends each tool under a name of its own', async () => {
    await responses(vendor).create({ model, tools, input: [additional, user] })
    const { body } = fleet.lastCall(vendor) ?? {}
    const names = called.map(({ description }) => nameOfTool(body, description))
    expect(new Set(names).size).toBe(called.length)
    expect(names).not.toContain(undefined)
    expect(fleet.lastCall(vendor)?.text).toContain(
      'Lists the issues.\\n\\nAbout all tools of mcp__tracker: Tools of the tracker.',
    )
    expect(names).toContain('functions__exec')
    expect(names).toContain('agents__list')
  })

  it('repeats what the client has set, whole and streamed', async () => {
    const set = {
      tools,
      tool_choice: { type: 'function' as const, name: 'mcp__tracker__list' },
      parallel_tool_calls: false,
      max_output_tokens: 500,
      metadata: { team: 'blue' },
      text: { format: { type: 'text' as const } },
    }
    const request = { model, input: [user], ...set }
    expect(await responses(vendor).create(request)).toMatchObject(set)
    const states: unknown[] = []
    for await (const event of await responses(vendor).create({ ...request, stream: true })) {
      if ('response' in event) states.push(event.response)
    }
    expect(states).toMatchObject([set, set, set])
    const { tools: none, tool_choice } = await responses(vendor).create({ model, input: [user] })
    expect([none, tool_choice]).toEqual([[], 'auto'])
  })

  it('never searches the live web if the client forbids it', async () => {
    await responses(vendor).create({ model, tools, input: [user] })
    expect(fleet.lastCall(vendor)?.text).not.toMatch(/search/i)
    const choice = { type: 'web_search_preview' as const }
    const forced = responses(vendor).create({ model, tools, input: [user], tool_choice: choice })
    await expect(forced).rejects.toThrow(
      /^400 tools\[4\]: web searches without access to the web are not supported by this provider/,
    )
  })

  it('gets the tools that a search has loaded', async () => {
    const found = [
      {
        type: 'tool_search_call',
        call_id: 's',
        execution: 'client',
        arguments: {},
        status: 'completed',
      },
      {
        type: 'tool_search_output',
        call_id: 's',
        execution: 'client',
        status: 'completed',
        tools: [tools[1]],
      },
    ] as unknown as Input[]
    await responses(vendor).create({ model, tools: [], input: [user, ...found, user] })
    expect(nameOfTool(fleet.lastCall(vendor)?.body, 'Lists the issues.')).toBe('mcp__tracker__list')
  })
})

const search = { type: 'web_search' as const }

describe('a web search that the model may leave', () => {
  it('is sent to vendors that have one', async () => {
    await responses('c').create({ model: 'claude-sonnet-4-5', tools: [search], input: 'x' })
    expect(fleet.lastCall('c')?.text).toContain('web_search_20250305')
    await responses('d').create({ model: 'gemini-2.5-pro', tools: [search], input: 'x' })
    expect(fleet.lastCall('d')?.text).toContain('googleSearch')
    await responses('a').create({ model: 'gpt-5-search-api', tools: [search], input: 'x' })
    expect(fleet.lastCall('a')?.text).toContain('web_search_options')
  })

  it('is left out where there is none', async () => {
    const model = 'anthropic.claude-sonnet-4-5-v1:0'
    await responses('f').create({ model, tools: [search], input: 'x' })
    expect(fleet.lastCall('f')?.text).not.toMatch(/search/i)
    await responses('a').create({ model: 'some-model', tools: [search], input: 'x' })
    expect(fleet.lastCall('a')?.text).not.toMatch(/search/i)
  })

  it('is refused there if the choice of the client demands it', async () => {
    for (const tool_choice of [{ type: 'web_search_preview' as const }, 'required' as const]) {
      const request = { model: 'anthropic.claude-sonnet-4-5-v1:0', tools: [search], input: 'x' }
      await expect(responses('f').create({ ...request, tool_choice })).rejects.toThrow(
        /^400 tools\[0\]: web searches are not supported by this provider/,
      )
    }
    const request = { model: 'claude-sonnet-4-5', tools: [search], input: 'x' }
    const tool_choice = { type: 'web_search_preview' as const }
    await responses('c').create({ ...request, tool_choice })
    expect(fleet.lastCall('c')?.body.tool_choice).toEqual({ type: 'tool', name: 'web_search' })
  })
})
