import Anthropic from '@anthropic-ai/sdk'
import { describe, expect, it } from 'vitest'
import { json, openStream, sendEvent } from '../support/vendors/vendor.ts'
import { calls, chunk, completes, completion } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'
import { a, ask, base, collect, openai, running } from './model-telemetry-rig.ts'

const anthropic = (name: string) =>
  new Anthropic({ baseURL: base(name), apiKey: 'client-key', maxRetries: 0 })
const askC = { ...ask, max_tokens: 100 }

/** The line of the access log that is written for a request. */
async function lineOf(send: () => Promise<unknown>): Promise<Record<string, unknown>> {
  const from = running.stdout.length
  await send()
  const text = await waitFor('the line', () => {
    const lines = running.stdout.slice(from).split('\n').slice(0, -1)
    return lines.find((line) => line.includes('"scope":"request"'))
  })
  return JSON.parse(text) as Record<string, unknown>
}

describe('the access log of model requests', () => {
  it('has the models, the provider and the token usage of a request', async () => {
    const line = await lineOf(() =>
      openai('a').chat.completions.create({
        ...ask,
        model: 'fast',
        temperature: 0.5,
        max_tokens: 9,
      }),
    )
    expect(line).toMatchObject({
      protocol: 'llm',
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'm-1',
      'gen_ai.response.model': 'm-1',
      'gen_ai.usage.input_tokens': 11,
      'gen_ai.usage.output_tokens': 7,
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.max_tokens': 9,
      asked: 'fast',
      streaming: false,
      requestModel: 'm-1',
      provider: 'openai',
      totalTokens: 18,
      serviceTier: 'default',
      prompt: [{ role: 'user', content: 'Hello' }],
      completion: ['Hello from A'],
      params: { temperature: 0.5, max_tokens: 9 },
    })
    expect(line).not.toHaveProperty('timeToFirstToken')
    expect(line).not.toHaveProperty('countTokens')
  })

  it('has the same for streams, plus cached tokens and the time to the first token', async () => {
    const expected = {
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.usage.input_tokens': 13,
      'gen_ai.usage.output_tokens': 5,
      'gen_ai.usage.cache_read.input_tokens': 4,
      'gen_ai.server.time_to_first_token': expect.any(Number),
      streaming: true,
      inputTokens: 13,
      providerInputTokens: 9,
      cachedInputTokens: 4,
      outputTokens: 5,
      totalTokens: 18,
      timeToFirstToken: expect.any(Number),
      timePerOutputToken: expect.any(Number),
      completion: ['Hello from C'],
    }
    expect(await lineOf(() => anthropic('c').messages.stream(askC).finalMessage())).toMatchObject(
      expected,
    )
    expect(
      await lineOf(() => openai('c').chat.completions.stream(ask).finalContent()),
    ).toMatchObject(expected)
  })

  it('has fields for reasoning, embeddings and token counts', async () => {
    const responses = await lineOf(() => openai('a').responses.create({ model: 'm-1', input: 'x' }))
    expect(responses).toMatchObject({
      'gen_ai.usage.reasoning_tokens': 2,
      'gen_ai.usage.cache_read.input_tokens': 3,
      inputTokens: 11,
      reasoningTokens: 2,
      cachedInputTokens: 3,
      prompt: [{ role: 'user', content: 'x' }],
    })
    const embeddings = await lineOf(() =>
      openai('a').embeddings.create({
        model: 'e',
        input: 'x',
        dimensions: 2,
        encoding_format: 'float',
      }),
    )
    expect(embeddings).toMatchObject({
      'gen_ai.operation.name': 'embeddings',
      'gen_ai.usage.input_tokens': 4,
      'gen_ai.embeddings.dimension.count': 2,
      'gen_ai.request.encoding_formats': 'float',
    })
    for (const name of ['a', 'c']) {
      const counted = await lineOf(() =>
        anthropic(name).messages.countTokens({ ...ask, model: 'gpt-4o' }),
      )
      expect(counted).toMatchObject({ countTokens: name === 'c' ? 42 : 17 })
      expect(counted).not.toHaveProperty('inputTokens')
    }
  })

  it('has tool calls, whole and streamed', async () => {
    a.answer = calls({ id: 't-1', name: 'weather', input: { city: 'Bern' } })
    const call = { id: 't-1', name: 'weather', arguments: '{"city":"Bern"}' }
    expect(await lineOf(() => openai('a').chat.completions.create(ask))).toMatchObject({
      toolCalls: [call],
    })
    const streamed = await lineOf(async () =>
      collect(await openai('a').chat.completions.create({ ...ask, stream: true })),
    )
    expect(streamed).toMatchObject({ toolCalls: [call] })
    const messages = await lineOf(() => anthropic('a').messages.stream(askC).finalMessage())
    expect(messages).toMatchObject({ toolCalls: [call] })
  })

  it('logs calls of custom tools with name and input, whole and streamed', async () => {
    const custom = { name: 'shell', input: 'ls -l' }
    const called = { index: 0, id: 't-2', type: 'custom', custom }
    const item = { ...custom, type: 'custom_tool_call', id: 'ctc-1', call_id: 't-2' }
    const logged = { toolCalls: [{ id: 't-2', name: 'shell', arguments: 'ls -l' }] }
    a.answer = (_, response) => {
      const whole = completion('m-1', '') as { choices: { message: object }[] }
      const message = { role: 'assistant', content: null, tool_calls: [called] }
      json(response, 200, { ...whole, choices: [{ ...whole.choices[0], message }] })
    }
    expect(await lineOf(() => openai('a').chat.completions.create(ask))).toMatchObject(logged)
    a.answer = (_, response) => {
      openStream(response)
      const first = { ...called, custom: { name: 'shell', input: '' } }
      sendEvent(response, chunk('m-1', { tool_calls: [first] }))
      for (const input of ['ls', ' -l']) {
        sendEvent(response, chunk('m-1', { tool_calls: [{ index: 0, custom: { input } }] }))
      }
      sendEvent(response, chunk('m-1', {}, 'tool_calls'))
      sendEvent(response, '[DONE]')
      response.end()
    }
    const streamed = await lineOf(async () =>
      collect(await openai('a').chat.completions.create({ ...ask, stream: true })),
    )
    expect(streamed).toMatchObject(logged)
    a.answer = (_, response) =>
      json(response, 200, { id: 'resp-1', object: 'response', model: 'm-1', output: [item] })
    const response = await lineOf(() =>
      openai('a').responses.create({ model: 'm-1', input: 'Hello' }),
    )
    expect(response).toMatchObject(logged)
  })

  it('has only masked texts', async () => {
    const text = 'secret jane@example.com'
    a.answer = completes(...text)
    const line = await lineOf(() =>
      openai('masked')
        .chat.completions.stream({ ...ask, messages: [{ role: 'user', content: text }] })
        .finalContent(),
    )
    expect(line).toMatchObject({
      prompt: [{ role: 'user', content: '<masked> <EMAIL_ADDRESS>' }],
      completion: ['<masked> <EMAIL_ADDRESS>'],
    })
  })
})

it('response policies see the token usage of a whole answer', async () => {
  const answer = await fetch(`${base('masked')}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(ask),
  })
  expect(answer.headers.get('x-tokens')).toBe('18')
})
