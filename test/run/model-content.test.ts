/**
 * Content other than plain text for each vendor: it is translated to the format of the vendor, or the
 * request is refused with the path of the part. Nothing is dropped silently.
 */
import type { ServerResponse } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { json, openStream, sendEvent, type VendorCall } from '../support/vendors/vendor.ts'
import { calls } from '../support/vendors/vendor-a.ts'
import { callsC } from '../support/vendors/vendor-c.ts'
import { callsD } from '../support/vendors/vendor-d.ts'
import { converses } from '../support/vendors/vendor-f.ts'

const fleet = useFleet(({ at, region }) => [
  reached('a', { vendorA: {}, ...at('a') }),
  reached('c', { vendorC: {}, ...at('c') }),
  reached('d', { vendorD: {}, ...at('d') }, { auth: { key: 'AIzaKey' } }),
  reached('e', { vendorE: { projectId: 'my-project', region: 'us-central1' }, ...at('e') }),
  reached('f', { vendorF: { region }, ...at('f') }),
])
beforeEach(() => fleet.forget())

const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: fleet.base(name), apiKey: 'client-key', maxRetries: 0 })

const patch = { id: 'call_1', name: 'patch', input: { input: 'One "line"\n' } }
const text = patch.input.input

const ways = [
  { vendor: 'c', model: 'claude-sonnet-4-5', calls: callsC(patch) },
  { vendor: 'd', model: 'gemini-3-pro-preview', calls: callsD(patch) },
  { vendor: 'e', model: 'meta/llama-3.3-70b', calls: calls(patch) },
  { vendor: 'f', model: 'amazon.nova-pro-v1:0', calls: converses({ call: patch }) },
] as const

const pdf = 'JVBERi0xLjQK'
const png = 'aGVsbG8='
const question = { role: 'user' as const, content: 'Change it.' }

describe.each(ways)('$vendor with $model', ({ vendor, model, calls: answer }) => {
  // Chat completions of other models at vendorE go out as they came.
  it.skipIf(vendor === 'e')('calls custom tools of chat completions with plain text', async () => {
    fleet.vendors[vendor].next.push(answer, answer)
    const client = openai(vendor).chat.completions
    const tools = [{ type: 'custom' as const, custom: { name: 'patch' } }]
    const request = { model, messages: [question], tools }
    const whole = await client.create(request)
    const streamed = await client.stream(request).finalChatCompletion()
    for (const { choices } of [whole, streamed]) {
      const [call] = choices[0]?.message.tool_calls ?? []
      expect(call).toMatchObject({ type: 'custom', custom: { name: 'patch', input: text } })
      const result = { role: 'tool' as const, tool_call_id: call?.id ?? '', content: 'Done.' }
      const asked = { role: 'assistant' as const, tool_calls: call === undefined ? [] : [call] }
      await client.create({ ...request, messages: [question, asked, result] })
      expect(fleet.lastCall(vendor)?.text).toContain('Done.')
    }
  })

  it('calls custom tools of responses with plain text', async () => {
    fleet.vendors[vendor].next.push(answer, answer)
    const client = openai(vendor).responses
    const tools = [{ type: 'custom' as const, name: 'patch' }]
    const request = { model, input: 'Change it.', tools }
    const whole = await client.create(request)
    const events: string[] = []
    const stream = client.stream(request)
    stream.on('event', ({ type }) => events.push(type))
    const streamed = await stream.finalResponse()
    expect(events).toContain('response.custom_tool_call_input.delta')
    for (const { output } of [whole, streamed]) {
      const [item] = output.filter(({ type }) => type === 'custom_tool_call')
      expect(item).toMatchObject({ name: 'patch', input: text })
    }
  })

  it('gets pictures, PDFs and texts in results of tools', async () => {
    const image = { type: 'base64' as const, media_type: 'image/png' as const, data: png }
    const file = { type: 'base64' as const, media_type: 'application/pdf' as const, data: pdf }
    const plain = { type: 'text' as const, media_type: 'text/plain' as const, data: 'Rain.' }
    const content = [
      { type: 'text' as const, text: 'Look:' },
      { type: 'image' as const, source: image },
      { type: 'document' as const, source: file },
      { type: 'document' as const, source: plain },
    ]
    await anthropic(vendor).messages.create({
      model,
      max_tokens: 100,
      tools: [{ name: 'patch', input_schema: { type: 'object' } }],
      messages: [
        question,
        { role: 'assistant', content: [{ type: 'tool_use', ...patch }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content }] },
      ],
    })
    const sent = fleet.lastCall(vendor)?.text ?? ''
    for (const part of [png, pdf, 'Look:']) expect(sent).toContain(part)
    expect(sent.includes('Rain.') || sent.includes('UmFpbi4=')).toBe(true)
  })
})

const pdfPart = {
  type: 'file' as const,
  file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` },
}
const audioPart = {
  type: 'input_audio' as const,
  input_audio: { data: 'UklGRg==', format: 'wav' as const },
}

it.each(['c', 'd', 'f'] as const)('sends PDFs of chat completions to vendor %s', async (vendor) => {
  const content = [{ type: 'text' as const, text: 'Read.' }, pdfPart]
  await openai(vendor).chat.completions.create({
    model: 'gemini-2.5-pro',
    messages: [{ role: 'user', content }],
  })
  expect(fleet.lastCall(vendor)?.text).toContain(pdf)
})

it('sends audio to vendors that support it, and refuses it by name for others', async () => {
  const messages = [question, { role: 'user' as const, content: [audioPart] }]
  const ask = (vendor: string) => openai(vendor).chat.completions.create({ model: 'm-1', messages })
  for (const vendor of ['d', 'f'] as const) {
    await ask(vendor)
    expect(fleet.lastCall(vendor)?.text).toContain('UklGRg==')
  }
  await expect(ask('c')).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('messages[1].content[0]'),
  })
  expect(fleet.lastCall('c')).toBe(undefined)
})

const base = { model: 'm-1', max_tokens: 9 }
const bash = { type: 'bash_20250124' as const, name: 'bash' as const }

it.each([
  ['a', 'tools[0]', { tools: [bash], messages: [question] }],
  ['f', 'tools[0]', { tools: [bash], messages: [question] }],
  [
    'd',
    'messages[0].content[0].source',
    {
      messages: [
        { role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: 'f' } }] },
      ],
    },
  ],
  [
    'a',
    'messages[1].content[0]',
    {
      messages: [question, { role: 'user', content: [{ type: 'container_upload', file_id: 'f' }] }],
    },
  ],
] as const)(
  'refuses messages for vendor %s that it cannot translate, naming %s',
  async (vendor, path, body) => {
    for (const stream of [false, true]) {
      const answer = await fetch(`${fleet.base(vendor)}/v1/messages`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...base, ...body, stream }),
      })
      expect(answer.status).toBe(400)
      const { error } = (await answer.json()) as { error: { type: string; message: string } }
      expect(error.type).toBe('invalid_request_error')
      expect(error.message.startsWith(`${path}: `)).toBe(true)
    }
    expect(fleet.lastCall(vendor)).toBe(undefined)
  },
)

/** An answer of vendorC after a search of its own. */
function searches({ body }: VendorCall, response: Parameters<typeof json>[0]): void {
  const blocks = [
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'news' } },
    { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
    { type: 'text', text: 'Rain.' },
  ]
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm-1' }
  const end = { stop_reason: 'end_turn', stop_sequence: null }
  const usage = { input_tokens: 1, output_tokens: 2 }
  if (body.stream !== true) {
    json(response, 200, { ...message, ...end, usage, content: blocks })
    return
  }
  openStream(response)
  const send = (type: string, fields: object) => sendEvent(response, { type, ...fields }, type)
  send('message_start', { message: { ...message, content: [], usage } })
  for (const [index, block] of blocks.entries()) {
    const content_block = block.type === 'server_tool_use' ? { ...block, input: {} } : block
    send('content_block_start', { index, content_block })
    const delta = { type: 'input_json_delta', partial_json: '{"query":"news"}' }
    if (block.type === 'server_tool_use') send('content_block_delta', { index, delta })
    send('content_block_stop', { index })
  }
  send('message_delta', { delta: end, usage })
  send('message_stop', {})
  response.end()
}

it('web search runs at the vendor, without a tool call of the client', async () => {
  fleet.vendors.c.next.push(searches, searches)
  const client = openai('c').chat.completions
  const request = { model: 'm-1', messages: [question], web_search_options: {} }
  const whole = await client.create(request)
  const streamed = await client.stream(request).finalChatCompletion()
  for (const { choices } of [whole, streamed]) {
    expect(choices[0]).toMatchObject({ message: { content: 'Rain.' }, finish_reason: 'stop' })
    expect(choices[0]?.message.tool_calls).toBe(undefined)
  }
  expect(fleet.lastCall('c')?.body.tools).toEqual([
    { type: 'web_search_20250305', name: 'web_search' },
  ])
  const searching = { model: 'm-1', input: 'News?', tools: [{ type: 'web_search' as const }] }
  await openai('d').responses.create(searching)
  expect(fleet.lastCall('d')?.body.tools).toEqual([{ googleSearch: {} }])
  await expect(openai('f').chat.completions.create(request)).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('web_search_options'),
  })
})

describe('images that vendorD makes', () => {
  const model = 'gemini-2.5-flash-image'
  const url = `data:image/png;base64,${png}`
  const draws = ({ path }: VendorCall, response: ServerResponse) => {
    const parts = [{ text: 'Here:' }, { inlineData: { mimeType: 'image/png', data: png } }]
    const answer = {
      candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 },
    }
    if (!path.includes('streamGenerateContent')) return json(response, 200, answer)
    openStream(response)
    sendEvent(response, answer)
    response.end()
  }

  it('reach clients of chat completions, who can send them back', async () => {
    fleet.vendors.d.next.push(draws, draws)
    const client = openai('d').chat.completions
    const request = { model, messages: [question], modalities: ['text', 'image'] as never }
    const { choices } = await client.create(request)
    const image = { index: 0, type: 'image_url', image_url: { url } }
    expect(choices[0]?.message).toMatchObject({ content: 'Here:', images: [image] })
    expect(fleet.lastCall('d')?.body).toMatchObject({
      generationConfig: { responseModalities: ['TEXT', 'IMAGE'] },
    })
    const deltas = []
    for await (const chunk of await client.create({ ...request, stream: true })) {
      deltas.push(chunk.choices[0]?.delta)
    }
    expect(deltas).toContainEqual({ images: [image] })
    const drawn = choices[0]?.message as never
    await client.create({ ...request, messages: [question, drawn, question] })
    expect(fleet.lastCall('d')?.text).toContain(png)
  })

  it('reach clients of responses as calls of image generation', async () => {
    fleet.vendors.d.next.push(draws, draws)
    const client = openai('d').responses
    const whole = await client.create({ model, input: 'Draw.' })
    const streamed = await client.stream({ model, input: 'Draw.' }).finalResponse()
    for (const { output } of [whole, streamed]) {
      const call = { type: 'image_generation_call', status: 'completed', result: png }
      expect(output).toContainEqual(expect.objectContaining(call))
    }
  })

  it('are an error to clients of Messages, whose format has no place for them', async () => {
    fleet.vendors.d.next.push(draws, draws)
    const client = anthropic('d').messages
    const request = { model, max_tokens: 100, messages: [question] }
    await expect(client.create(request)).rejects.toThrow('the response holds an image')
    await expect(client.stream(request).finalMessage()).rejects.toThrow(
      'the response holds an image',
    )
  })

  it('are refused for vendors that do not make images', async () => {
    const request = { messages: [question], modalities: ['image'] as never }
    for (const [name, model] of [
      ['c', 'claude-sonnet-4-5'],
      ['f', 'amazon.nova-pro-v1:0'],
    ] as const) {
      const asked = openai(name).chat.completions.create({ ...request, model })
      await expect(asked).rejects.toThrow('modalities: images in responses are not supported')
    }
  })
})
