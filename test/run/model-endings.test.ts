/** Why answers end, calls with broken arguments, and servers that write chat completions in their own way. */
import { describe, expect, it } from 'vitest'
import { json, openStream, type VendorCall } from '../support/vendors/vendor.ts'
import { completion } from '../support/vendors/vendor-a.ts'
import { converses } from '../support/vendors/vendor-f.ts'
import { at, type Fields, type Format, type Letter, useModels, user } from './model-rules-rig.ts'

const { fleet, answer, sent } = useModels()

type Response = Parameters<Parameters<typeof fleet.vendors.a.next.push>[0]>[1]

/** Answers with this body, or as these events if the request asks for a stream. */
const replies =
  (body: object, events: readonly object[]) =>
  (call: VendorCall, response: Response): void => {
    const isStream = call.body.stream === true || call.path.includes('stream')
    if (!isStream) {
      json(response, 200, body)
      return
    }
    openStream(response)
    for (const event of events) {
      const { type } = event as { type?: string }
      response.write(
        `${type === undefined ? '' : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`,
      )
    }
    response.end()
  }

const gemini = (finishReason: string, parts: object[] = []) => {
  const body = {
    candidates: [{ content: { role: 'model', parts }, finishReason, index: 0 }],
    usageMetadata: { promptTokenCount: 3, totalTokenCount: 3 },
  }
  return replies(body, [body])
}

const message = (stop: object, content: object[] = []) => {
  const usage = { input_tokens: 3, output_tokens: 2 }
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', usage }
  const blocks = content.flatMap((block, index) => [
    { type: 'content_block_start', index, content_block: { ...block, text: '' } },
    {
      type: 'content_block_delta',
      index,
      delta: { type: 'text_delta', text: (block as { text: string }).text },
    },
    { type: 'content_block_stop', index },
  ])
  return replies({ ...head, content, ...stop }, [
    { type: 'message_start', message: { ...head, content: [], stop_reason: null } },
    ...blocks,
    { type: 'message_delta', delta: stop, usage },
    { type: 'message_stop' },
  ])
}

interface Choice {
  readonly message: Fields
  readonly finish_reason: string
}

/** A chat completion with this choice, whose message is one delta in a stream. */
const chat = ({ message: content, finish_reason }: Choice, model = 'm') => {
  const whole = completion(model, '')
  const choice = { index: 0, finish_reason }
  const calls = content.tool_calls as object[] | undefined
  const tool_calls = calls?.map((call, index) => ({ index, ...call }))
  const delta = { ...content, ...(tool_calls && { tool_calls }) }
  return replies({ ...whole, choices: [{ ...choice, message: content }] }, [
    { id: 'c', model, choices: [{ index: 0, delta, finish_reason: null }] },
    { id: 'c', model, choices: [{ ...choice, delta: {} }] },
  ])
}

const models: Readonly<Record<Letter, string>> = {
  a: 'gpt-5.1',
  c: 'claude-sonnet-4-5',
  d: 'gemini-2.5-flash',
  e: 'claude-sonnet-4-5',
  f: 'anthropic.claude-sonnet-4-5-v1:0',
}

/** Returns why an answer ended, as the format of the client says it; an error if there is one. */
async function ending(vendor: Letter, format: Format, isStream: boolean): Promise<unknown> {
  const { status, body, events } = await answer(vendor, format, models[vendor], {
    stream: isStream,
  })
  const found = isStream ? events : [body]
  const error = found.map((one) => at(one, 'error.message')).find((one) => one !== undefined)
  if (error !== undefined) return `${isStream ? '' : `${status} `}${String(error)}`
  const failed = found.find((one) => one.type === 'error')
  if (failed !== undefined) return failed.message
  const read = {
    chat: (one: Fields) => at(one, 'choices.0.finish_reason'),
    messages: (one: Fields) => at(one, 'stop_reason') ?? at(one, 'delta.stop_reason'),
    responses: (one: Fields) =>
      at(one, isStream ? 'response.incomplete_details.reason' : 'incomplete_details.reason') ??
      at(one, isStream ? 'response.status' : 'status'),
  }[format]
  return found.map(read).findLast((one) => one != null)
}

const without = 'the provider ended the response without a result'

describe.each([false, true])('the end of an answer, streamed: %s', (isStream) => {
  it.each<readonly [Letter, Format, ReturnType<typeof replies>, string]>([
    ['d', 'chat', gemini('NO_IMAGE'), `502 ${without}: NO_IMAGE`],
    [
      'd',
      'messages',
      gemini('MALFORMED_FUNCTION_CALL', [{ text: 'x' }]),
      `502 ${without}: MALFORMED_FUNCTION_CALL`,
    ],
    ['d', 'responses', gemini('OTHER'), `502 ${without}: OTHER`],
    ['d', 'chat', gemini('IMAGE_PROHIBITED_CONTENT'), 'content_filter'],
    ['d', 'chat', gemini('A_NEW_REASON'), `502 ${without}: A_NEW_REASON`],
    ['d', 'chat', gemini('A_NEW_REASON', [{ text: 'x' }]), 'stop'],
    [
      'f',
      'messages',
      converses({ stopReason: 'malformed_tool_use' }),
      `502 ${without}: malformed_tool_use`,
    ],
    ['f', 'chat', converses({ texts: ['x'], stopReason: 'content_filtered' }), 'content_filter'],
    [
      'c',
      'chat',
      message({ stop_reason: 'pause_turn' }, [{ type: 'text', text: 'half' }]),
      'length',
    ],
    [
      'c',
      'responses',
      message({ stop_reason: 'refusal' }, [{ type: 'text', text: 'partial' }]),
      'content_filter',
    ],
    ['a', 'messages', chat({ message: { refusal: 'I cannot' }, finish_reason: 'stop' }), 'refusal'],
    [
      'a',
      'messages',
      chat({
        message: { tool_calls: [{ id: 'x', function: { name: 'f', arguments: '{}' } }] },
        finish_reason: 'stop',
      }),
      'tool_use',
    ],
  ])('of %s in %s says what happened', async (vendor, format, reply, expected) => {
    fleet.vendors[vendor].next.push(reply)
    const text = isStream ? expected.replace(/^502 /, '') : expected
    expect(await ending(vendor, format, isStream)).toBe(text)
  })

  it('of a refusal has the words of the provider', async () => {
    const stop = {
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', explanation: 'Not that' },
    }
    fleet.vendors.c.next.push(message(stop), message(stop))
    const inChat = await answer('c', 'chat', models.c, { stream: isStream })
    expect(inChat.text).toContain('"refusal":"Not that"')
    const inResponses = await answer('c', 'responses', models.c, { stream: isStream })
    expect(inResponses.text).toContain('{"type":"refusal","refusal":"Not that"}')
    expect(inResponses.text).toContain('"status":"incomplete"')
  })
})

describe('a call of a tool', () => {
  const call = (args: unknown, id = '') => ({
    id,
    type: 'function',
    function: { name: 'f', arguments: args },
  })

  it('keeps arguments that a server sends as an object, and gets an id', async () => {
    const reply = chat({ message: { tool_calls: [call({ q: 1 })] }, finish_reason: 'tool_calls' })
    fleet.vendors.a.next.push(reply, reply)
    const whole = await answer('a', 'messages', 'm', {})
    expect(at(whole.body, 'content.0')).toMatchObject({
      type: 'tool_use',
      name: 'f',
      input: { q: 1 },
    })
    expect(at(whole.body, 'content.0.id')).toMatch(/^call_.+/)
    const streamed = await answer('a', 'messages', 'm', { stream: true })
    const start = streamed.events.find(({ type }) => type === 'content_block_start')
    expect(at(start, 'content_block.id')).toMatch(/^call_.+/)
    expect(streamed.text).toContain('"partial_json":"{\\"q\\":1}"')
  })

  it('is never made without its arguments', async () => {
    const half = { tool_calls: [call('{"q":"half', 'x')] }
    fleet.vendors.a.next.push(chat({ message: half, finish_reason: 'tool_calls' }))
    const broken = await answer('a', 'messages', 'm', {})
    expect(broken.status).toBe(502)
    expect(broken.text).toContain('the arguments for the tool \\"f\\" are not a JSON object')
    fleet.vendors.a.next.push(chat({ message: half, finish_reason: 'length' }))
    const cut = await answer('a', 'messages', 'm', {})
    expect(cut.body).toMatchObject({ content: [], stop_reason: 'max_tokens' })
  })
})

describe('a server of its own kind', () => {
  it.each([false, true])('may call its reasoning by another name, streamed: %s', async (stream) => {
    const reply = chat({ message: { reasoning: 'Hm', content: 'Hi' }, finish_reason: 'stop' })
    fleet.vendors.a.next.push(reply, reply)
    expect((await answer('a', 'messages', 'm', { stream })).text).toContain('"thinking":"Hm"')
    expect((await answer('a', 'responses', 'm', { stream })).text).toContain('Hm')
  })

  it('gets the thinking of the history back, unless its model is known to refuse it', async () => {
    const thought = { type: 'thinking', thinking: 'T', signature: '' }
    const messages = [
      ...user,
      {
        role: 'assistant',
        content: [thought, { type: 'tool_use', id: 't1', name: 'f', input: {} }],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'r' }] },
    ]
    const fields = { messages, tools: [{ name: 'f', input_schema: { type: 'object' } }] }
    for (const model of ['deepseek-reasoner', 'kimi-k2-thinking', 'my-own-model']) {
      expect(at(await sent('a', 'messages', model, fields), 'messages.1.reasoning_content')).toBe(
        'T',
      )
    }
    for (const model of ['gpt-5.1', 'mistral-small-latest']) {
      expect(at(await sent('a', 'messages', model, fields), 'messages.1.reasoning_content')).toBe(
        undefined,
      )
    }
  })

  it('may begin with an event without an id, and end without an empty line', async () => {
    const reply = (_: VendorCall, response: Response): void => {
      openStream(response)
      const first = { id: '', model: '', choices: [], prompt_filter_results: [] }
      const delta = { id: 'c-1', model: 'm-1', choices: [{ index: 0, delta: { content: 'Hi' } }] }
      const last = { ...delta, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
      for (const event of [first, delta, last]) response.write(`data: ${JSON.stringify(event)}\n\n`)
      response.end('data: [DONE]')
    }
    fleet.vendors.a.next.push(reply, reply)
    const translated = await answer('a', 'messages', 'm', { stream: true })
    expect(at(translated.events[0], 'message')).toMatchObject({ id: 'c-1', model: 'm-1' })
    expect(translated.events.at(-1)).toEqual({ type: 'message_stop' })
    const native = await answer('a', 'chat', 'm', { stream: true })
    expect(native.text).toMatch(/data: \[DONE\]\n\n$/)
    expect(native.text).not.toContain('"error"')
  })
})

describe.each([false, true])('sources of an answer, streamed: %s', (stream) => {
  const url = 'https://e.test'
  const search = { web_search_options: {} }

  const cited = (call: VendorCall, response: Response): void => {
    const citation = {
      type: 'web_search_result_location',
      url,
      title: 'T',
      cited_text: 'so',
      encrypted_index: 'E',
    }
    const block = { type: 'text', text: 'It is so', citations: [citation] }
    const usage = { input_tokens: 1, output_tokens: 1 }
    const head = { id: 'm', type: 'message', role: 'assistant', model: 'claude', usage }
    replies({ ...head, content: [block], stop_reason: 'end_turn' }, [
      { type: 'message_start', message: { ...head, content: [] } },
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'text', text: '', citations: [] },
      },
      { type: 'content_block_delta', index: 0, delta: { type: 'citations_delta', citation } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'It is so' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
      { type: 'message_stop' },
    ])(call, response)
  }
  const annotation = { url, title: 'T', start_index: 0, end_index: 8 }

  it('of vendorC are annotations of chats and responses', async () => {
    fleet.vendors.c.next.push(cited, cited)
    const chats = await answer('c', 'chat', models.c, { stream, ...search })
    expect(chats.text).toContain(JSON.stringify({ type: 'url_citation', url_citation: annotation }))
    const tools = [{ type: 'web_search' }]
    const responses = await answer('c', 'responses', models.c, { stream, tools })
    expect(responses.text).toContain(
      `"annotations":[${JSON.stringify({ type: 'url_citation', ...annotation })}]`,
    )
    if (stream) expect(responses.text).toContain('response.output_text.annotation.added')
  })

  it('of vendorD are placed by characters', async () => {
    const groundingMetadata = {
      groundingChunks: [{ web: { uri: url, title: 'T' } }],
      groundingSupports: [
        { segment: { startIndex: 0, endIndex: 6, text: 'Köln' }, groundingChunkIndices: [0] },
      ],
    }
    const content = { role: 'model', parts: [{ text: 'Köln.' }] }
    const body = { candidates: [{ content, groundingMetadata, finishReason: 'STOP', index: 0 }] }
    fleet.vendors.d.next.push(replies(body, [body]))
    const { text } = await answer('d', 'chat', models.d, { stream, ...search })
    expect(text).toContain(`"url_citation":${JSON.stringify({ ...annotation, end_index: 5 })}`)
  })

  it('of vendorA are citations of messages', async () => {
    const url_citation = { url, title: 'T', start_index: 0, end_index: 2 }
    const annotations = [{ type: 'url_citation', url_citation }]
    fleet.vendors.a.next.push(
      chat({ message: { content: 'It is so', annotations }, finish_reason: 'stop' }),
    )
    const { text } = await answer('a', 'messages', 'gpt-5.1', { stream })
    expect(text).toContain(`"type":"web_search_result_location","url":"${url}","title":"T"`)
  })
})
