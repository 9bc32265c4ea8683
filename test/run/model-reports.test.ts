/** Requests and responses from public reports about other gateways: owner/repository#number in each title. */
import { describe, expect, it } from 'vitest'
import { json, openStream, sendEvent, type VendorCall } from '../support/vendors/vendor.ts'
import { frame, openFrames } from '../support/vendors/vendor-f.ts'
import { at, type Fields, useModels, user } from './model-rules-rig.ts'

const { fleet, sent, answer, refused } = useModels()
const claude = 'claude-opus-4-8'
const claudeOfF = 'us.anthropic.claude-opus-4-8'
const gemini = 'gemini-3.5-flash'

const parameters = { type: 'object', properties: { a: { type: 'integer' } } }
const tool = { type: 'function', function: { name: 'f', description: 'Does it.', parameters } }
const flatTool = { type: 'function', name: 'f', parameters }
const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })
const called = (...ids: string[]) => [
  ...user,
  { role: 'assistant', content: null, tool_calls: ids.map(call) },
]
const result = (content: string, id?: string) => ({
  role: 'tool',
  content,
  ...(id !== undefined && { tool_call_id: id }),
})

/** The ids of results in the last message that vendor F has got, by their texts. */
const resultsOf = (body: Fields) =>
  (at(body, 'messages.2.content') as Fields[]).map(({ toolResult }) => [
    at(toolResult, 'content.0.text'),
    at(toolResult, 'toolUseId'),
  ])

describe('calls of tools', () => {
  it('are found for results without an id, in their order (agentgateway/agentgateway#2403)', async () => {
    const messages = [...called('c1', 'c2', 'c3'), result('1'), result('2', 'c2'), result('3')]
    const body = await sent('f', 'chat', claudeOfF, { tools: [tool], messages })
    expect(resultsOf(body)).toEqual([
      ['1', 'c1'],
      ['2', 'c2'],
      ['3', 'c3'],
    ])
    const unnamed = [...called('', ''), result('1'), result('2')]
    const named = resultsOf(
      await sent('f', 'chat', claudeOfF, { tools: [tool], messages: unnamed }),
    )
    expect(new Set(named.map(([, id]) => id)).size).toBe(2)
    fleet.forget()
    const surplus = [...called('c1'), result('1'), result('2')]
    await refused('f', 'chat', claudeOfF, { messages: surplus }, 'a result of a tool names no call')
  })

  it('may be in the history of a request without tools (BerriAI/litellm#40735)', async () => {
    const messages = [...called('c1'), result('1', 'c1')]
    const body = await sent('f', 'chat', claudeOfF, { messages })
    expect(at(body, 'toolConfig.tools.0.toolSpec.name')).toBe('unavailable')
    expect(at(await sent('c', 'chat', claude, { messages }), 'tools.0.name')).toBe('unavailable')
  })

  it('are sent without an empty description, which Converse refuses (BerriAI/litellm#24668)', async () => {
    const tools = [{ type: 'function', function: { name: 'f', description: '', parameters } }]
    const body = await sent('f', 'chat', claudeOfF, { tools })
    expect(at(body, 'toolConfig.tools.0.toolSpec')).not.toHaveProperty('description')
  })

  it('may be followed by a result and a message in one turn (elastic/kibana#284682)', async () => {
    const messages = [...called('c1'), result('1', 'c1'), { role: 'user', content: 'Hurry' }]
    const body = await sent('f', 'chat', claudeOfF, { tools: [tool], messages })
    expect(at(body, 'messages')).toHaveLength(3)
    expect(at(body, 'messages.2.content.1')).toEqual({ text: 'Hurry' })
  })

  it('may be forced by name in a streamed response (BerriAI/litellm#33689)', async () => {
    const fields = { stream: true, tools: [flatTool], tool_choice: { type: 'function', name: 'f' } }
    const { status, events } = await answer('c', 'responses', claude, fields)
    expect([status, events.at(-1)?.type]).toEqual([200, 'response.completed'])
    expect(fleet.lastCall('c')?.body.tool_choice).toEqual({ type: 'tool', name: 'f' })
  })

  it('are not forced where the model refuses that, and the error says so (BerriAI/litellm#42721)', async () => {
    const fields = { tools: [tool], tool_choice: 'required' }
    await refused('c', 'chat', 'claude-opus-5-5', fields, 'tool_choice: forced calls of tools')
  })
})

describe('signatures of thoughts', () => {
  const parts = [
    { text: 'Hm', thought: true },
    { functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'c2ln' },
    { functionCall: { name: 'f', args: { a: 2 } } },
    { functionCall: { name: 'f', args: { a: 3 } }, thoughtSignature: 'ZC1zaWc=' },
  ]
  const callsInParallel = () =>
    fleet.vendors.d.next.push((_: VendorCall, response) =>
      json(response, 200, {
        candidates: [{ index: 0, finishReason: 'STOP', content: { role: 'model', parts } }],
        usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      }),
    )
  const signed = (body: Fields) =>
    (at(body, 'contents.1.parts') as Fields[]).map(({ thoughtSignature }) => thoughtSignature)

  it('stay with their own calls of several in parallel (vercel/ai#20008, diegosouzapw/OmniRoute#11669)', async () => {
    callsInParallel()
    const asked = { tools: [flatTool], include: ['reasoning.encrypted_content'], store: false }
    const { body } = await answer('d', 'responses', gemini, asked)
    const output = at(body, 'output') as Fields[]
    const ids = output.flatMap(({ call_id: id }) => (id === undefined ? [] : [id]))
    const outputs = ids.map((id) => ({ type: 'function_call_output', call_id: id, output: 'r' }))
    const input = [...user, ...output, ...outputs]
    const again = await sent('d', 'responses', gemini, { ...asked, input })
    expect(signed(again)).toEqual(['c2ln', undefined, 'ZC1zaWc='])

    callsInParallel()
    const chat = await answer('d', 'chat', gemini, { tools: [tool] })
    const message = at(chat.body, 'choices.0.message') as { tool_calls: { id: string }[] }
    const results = message.tool_calls.map(({ id }) => result('r', id))
    const messages = [...user, message, ...results]
    expect(signed(await sent('d', 'chat', gemini, { tools: [tool], messages }))).toEqual([
      'c2ln',
      undefined,
      'ZC1zaWc=',
    ])
  })

  it('come without a text if thoughts are omitted (open-webui/open-webui#29860)', async () => {
    fleet.vendors.f.next.push((_: VendorCall, response) => {
      openFrames(response)
      const signature = { reasoningContent: { signature: 'c2lnLWM=' } }
      for (const [type, payload] of [
        ['messageStart', { role: 'assistant' }],
        ['contentBlockDelta', { contentBlockIndex: 0, delta: signature }],
        ['contentBlockStop', { contentBlockIndex: 0 }],
        ['contentBlockDelta', { contentBlockIndex: 1, delta: { text: 'Hi' } }],
        ['contentBlockStop', { contentBlockIndex: 1 }],
        ['messageStop', { stopReason: 'end_turn' }],
      ] as const) {
        response.write(frame(type, payload))
      }
      response.end()
    })
    const thinking = { type: 'adaptive' }
    const { events } = await answer('f', 'messages', claudeOfF, { stream: true, thinking })
    const blocks = events.filter(({ index }) => index === 0)
    expect(blocks).toMatchObject([
      { content_block: { type: 'thinking', thinking: '' } },
      { delta: { type: 'signature_delta', signature: 'c2lnLWM=' } },
      { type: 'content_block_stop' },
    ])
  })

  it('return with a call after thoughts without a text (langchain-ai/langchain#39687)', async () => {
    const block = (index: number, content: object, ...deltas: object[]) => [
      { type: 'content_block_start', index, content_block: content },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]
    const usage = { input_tokens: 1, output_tokens: 1 }
    const start = { id: 'm', type: 'message', role: 'assistant', content: [], model: claude, usage }
    fleet.vendors.c.next.push((_: VendorCall, response) => {
      openStream(response)
      for (const event of [
        { type: 'message_start', message: start },
        ...block(
          0,
          { type: 'thinking', thinking: '', signature: '' },
          { type: 'signature_delta', signature: 'sig-1' },
        ),
        ...block(
          1,
          { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
          { type: 'input_json_delta', partial_json: '{"a":1}' },
        ),
        { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 2 } },
        { type: 'message_stop' },
      ]) {
        sendEvent(response, event, event.type)
      }
      response.end()
    })
    const asked = { tools: [flatTool], reasoning: { effort: 'high' } }
    const { events } = await answer('c', 'responses', claude, { ...asked, stream: true })
    const output = at(events.at(-1), 'response.output') as Fields[]
    const done = { type: 'function_call_output', call_id: 'toolu_1', output: 'r' }
    await answer('c', 'responses', claude, { ...asked, input: [...user, ...output, done] })
    expect(at(fleet.lastCall('c')?.body, 'messages.1.content')).toEqual([
      { type: 'thinking', thinking: '', signature: 'sig-1' },
      { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } },
    ])
  })
})

describe('settings', () => {
  it.each(['xhigh', 'max'])(
    'of the effort %s become one that any server knows (justlovemaki/AIClient2API#598)',
    async (effort) => {
      const asked = { thinking: { type: 'adaptive' }, output_config: { effort } }
      const body = await sentToServer(asked)
      expect(body.reasoning_effort).toBe('high')
    },
  )

  it('of the cache for a whole request become a point of Converse (BerriAI/litellm#26320)', async () => {
    const cache = { cache_control: { type: 'ephemeral' } }
    const body = await sent('f', 'chat', claudeOfF, cache)
    expect(at(body, 'messages.0.content.1')).toEqual({ cachePoint: { type: 'default' } })
    expect(await sent('c', 'chat', claude, cache)).toMatchObject(cache)
  })

  async function sentToServer(fields: Fields): Promise<Fields> {
    const response = await fetch(`${fleet.base('custom')}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'a-new-model', max_tokens: 9, messages: user, ...fields }),
    })
    expect(response.status).toBe(200)
    return fleet.lastCall('a')?.body ?? {}
  }
})
