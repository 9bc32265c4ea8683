/** Models that accept an effort beside tools, or requests at all, only in the responses format of vendorA. */
import { describe, expect, it } from 'vitest'
import { json, openStream, sendEvent, type VendorCall } from '../support/vendors/vendor.ts'
import { failsC } from '../support/vendors/vendor-c.ts'
import { at, type Fields, useModels, user } from './model-rules-rig.ts'

const { fleet, answer, sent } = useModels()

type Response = Parameters<Parameters<typeof fleet.vendors.a.next.push>[0]>[1]

const usage = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 18,
}
const reasoning = {
  id: 'rs_1',
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: 'Hm' }],
  encrypted_content: 'gAAAA-sealed',
}
const call = {
  id: 'fc_1',
  type: 'function_call',
  call_id: 'call_1',
  name: 'f',
  arguments: '{"q":1}',
}
const annotation = {
  type: 'url_citation',
  url: 'https://e.test',
  title: 'T',
  start_index: 0,
  end_index: 2,
}
const said = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'It is', annotations: [annotation] }],
}

/** Answers with these items, whole or as events. */
const respondsWith =
  (items: readonly Fields[], state: Fields = { status: 'completed' }) =>
  (request: VendorCall, response: Response): void => {
    const head = {
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      model: String(request.body.model),
    }
    const whole = { ...head, ...state, output: items, usage }
    if (request.body.stream !== true) {
      json(response, 200, whole)
      return
    }
    openStream(response)
    const send = (type: string, fields: object) => sendEvent(response, { type, ...fields }, type)
    send('response.created', { response: { ...head, status: 'in_progress', output: [] } })
    for (const [output_index, item] of items.entries()) {
      const place = { output_index, item_id: item.id }
      send('response.output_item.added', {
        output_index,
        item: { ...item, content: [], summary: [] },
      })
      if (item.type === 'reasoning') {
        send('response.reasoning_summary_text.delta', { ...place, summary_index: 0, delta: 'Hm' })
      } else if (item.type === 'message') {
        send('response.output_text.delta', { ...place, content_index: 0, delta: 'It is' })
        send('response.output_text.annotation.added', { ...place, annotation })
      } else send('response.function_call_arguments.delta', { ...place, delta: call.arguments })
      send('response.output_item.done', { output_index, item })
    }
    send(`response.${state.status}`, { response: whole })
    response.end()
  }

const tools = [
  { name: 'f', input_schema: { type: 'object', properties: { q: { type: 'integer' } } } },
]
const thinks = { thinking: { type: 'adaptive' }, output_config: { effort: 'high' }, tools }

interface Block {
  readonly type: string
  readonly [name: string]: unknown
}

/** The blocks of a message, whole or put together from its events. */
function blocksOf({ body, events }: { body: Fields; events: readonly Fields[] }): Block[] {
  if (events.length === 0) return body.content as Block[]
  const blocks: Record<string, unknown>[] = []
  for (const event of events) {
    const index = Number(event.index)
    if (event.type === 'content_block_start') blocks[index] = { ...(event.content_block as object) }
    if (event.type !== 'content_block_delta') continue
    const block = blocks[index] ?? {}
    const { type: _, ...delta } = event.delta as Record<string, string>
    for (const [name, piece] of Object.entries(delta)) {
      const text = typeof block[name] === 'string' ? block[name] : ''
      block[name] = typeof piece === 'string' ? `${text}${piece}` : piece
    }
  }
  return blocks.map(
    ({ partial_json, citation: _, ...block }) =>
      (partial_json === undefined
        ? block
        : { ...block, input: JSON.parse(String(partial_json)) }) as Block,
  )
}

describe.each([false, true])('an agent whose model thinks beside tools, streamed: %s', (stream) => {
  it('is served in the responses format, and its reasoning is sent back', async () => {
    fleet.vendors.a.next.push(respondsWith([reasoning, call]), respondsWith([said]))
    const first = await answer('a', 'messages', 'gpt-5.5', { ...thinks, stream })
    expect(first.status, first.text).toBe(200)
    const request = fleet.lastCall('a')
    expect(request?.path).toBe('/v1/responses')
    expect(request?.body).toMatchObject({
      model: 'gpt-5.5',
      max_output_tokens: 9_000,
      reasoning: { effort: 'high', summary: 'auto' },
      tools: [{ type: 'function', name: 'f', strict: false }],
      store: false,
      include: ['reasoning.encrypted_content'],
    })
    const blocks = blocksOf(first)
    expect(blocks).toMatchObject([
      { type: 'thinking', thinking: 'Hm' },
      { type: 'tool_use', id: 'call_1', name: 'f', input: { q: 1 } },
    ])
    expect(first.text).toContain('"stop_reason":"tool_use"')
    expect(first.text).toContain('"cache_read_input_tokens":4')
    const result = { type: 'tool_result', tool_use_id: 'call_1', content: 'r' }
    const messages = [
      ...user,
      { role: 'assistant', content: blocks },
      { role: 'user', content: [result, { type: 'text', text: 'Go on' }] },
    ]
    const second = await answer('a', 'messages', 'gpt-5.5', { ...thinks, messages, stream })
    expect(fleet.lastCall('a')?.body.input).toEqual([
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: reasoning.summary,
        encrypted_content: 'gAAAA-sealed',
      },
      { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{"q":1}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'r' },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Go on' }] },
    ])
    expect(second.text).toContain('It is')
    expect(second.text).toContain('"url":"https://e.test"')
    expect(second.text).toContain('"stop_reason":"end_turn"')
  })

  it('loses reasoning that another vendor would refuse', async () => {
    fleet.vendors.a.next.push(respondsWith([reasoning, call]))
    const blocks = blocksOf(await answer('a', 'messages', 'gpt-5.5', { ...thinks, stream }))
    const result = { type: 'tool_result', tool_use_id: 'call_1', content: 'r' }
    const messages = [
      ...user,
      { role: 'assistant', content: blocks },
      { role: 'user', content: [result] },
    ]
    for (const [vendor, model] of [
      ['c', 'claude-opus-4-8'],
      ['f', 'anthropic.claude-opus-4-8'],
    ] as const) {
      expect(
        JSON.stringify(await sent(vendor, 'messages', model, { messages, tools })),
      ).not.toContain('sluice.')
    }
  })

  it.each([
    [{ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }, '"max_tokens"'],
    [{ status: 'incomplete', incomplete_details: { reason: 'content_filter' } }, '"refusal"'],
    [{ status: 'failed', error: { code: 'server_error', message: 'It broke' } }, 'It broke'],
  ])('learns why the answer ended: %j', async (state, expected) => {
    fleet.vendors.a.next.push(respondsWith([said], state))
    const { text } = await answer('a', 'messages', 'gpt-5.5', { ...thinks, stream })
    expect(text).toContain(expected)
  })
})

describe('the responses format', () => {
  it('serves models that chat completions do not have', async () => {
    fleet.vendors.a.next.push(respondsWith([said]))
    await sent('a', 'messages', 'gpt-5.3-codex', { system: 's', temperature: 0.5 })
    expect(fleet.lastCall('a')).toMatchObject({
      path: '/v1/responses',
      body: { instructions: 's' },
    })
  })

  it('is not used without need', async () => {
    await sent('a', 'messages', 'gpt-5.5', { tools })
    expect(fleet.lastCall('a')?.path).toBe('/v1/chat/completions')
    await sent('a', 'messages', 'gpt-5.1', thinks)
    expect(fleet.lastCall('a')?.path).toBe('/v1/chat/completions')
  })

  it('passes errors of the vendor on', async () => {
    fleet.vendors.a.next.push(failsC(429, 'rate_limit_error', 'Slow down'))
    const { status, body } = await answer('a', 'messages', 'gpt-5.5', thinks)
    expect([status, at(body, 'error.message')]).toEqual([429, 'Slow down'])
  })
})
