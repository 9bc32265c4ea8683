import type OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { completes, failsA, usageA } from '../support/vendors/vendor-a.ts'
import { a, anthropic, ask, askC, base, c, collect, hello, lastCall, openai } from './models-rig.ts'

describe('chat completions', () => {
  it('[BackendSpec.ai] [LLMProvider.vendorA] [AIBackend.provider] [LLMProvider.host] [LLMProvider.port] [RouteType=Completions] reach a vendor of the format with unknown fields intact', async () => {
    const extra = { ...ask, x_future: { deep: [1, 2] } } as typeof ask
    const answer = await openai('a').chat.completions.create(extra)
    expect(answer.choices[0]?.message.content).toBe('Hello from A')
    expect(answer).toMatchObject({ usage: usageA, service_tier: 'default' })
    expect(lastCall(a)?.path).toBe('/v1/chat/completions')
    expect(lastCall(a)?.text).toBe(JSON.stringify(extra))
    expect(lastCall(a)?.headers.authorization).toBe('Bearer gateway-key')
    expect(lastCall(a)?.headers.host).toBe(`127.0.0.1:${a.port}`)
  })

  it('stream without the usage if the client did not ask for it', async () => {
    const stream = await openai('a').chat.completions.create({ ...ask, stream: true })
    const chunks = await collect(stream)
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(
      'Hello from A',
    )
    expect(chunks.every(({ choices }) => choices.length === 1)).toBe(true)
    expect(chunks.some((one) => 'usage' in one)).toBe(false)
    expect(lastCall(a)?.body.stream_options).toEqual({ include_usage: true })
  })

  it('stream with the usage that the client asked for', async () => {
    const options = { stream: true, stream_options: { include_usage: true } } as const
    const chunks = await collect(await openai('a').chat.completions.create({ ...ask, ...options }))
    expect(chunks.at(-1)?.usage).toEqual(usageA)
  })

  it('reach a vendor of another format, which gets its own fields, headers and credential', async () => {
    const answer = await openai('c').chat.completions.create({
      ...ask,
      messages: [{ role: 'system', content: 'Be kind.' }, ...hello],
      max_tokens: 64,
    })
    expect(answer.object).toBe('chat.completion')
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { role: 'assistant', content: 'Hello from C' },
    })
    expect(answer.usage).toMatchObject({ completion_tokens: 5 })
    const call = lastCall(c)
    expect(call?.path).toBe('/v1/messages')
    expect(call?.body).toMatchObject({ model: 'm-1', max_tokens: 64, system: 'Be kind.' })
    expect(call?.headers['x-api-key']).toBe('gateway-key')
    expect(call?.headers.authorization).toBe(undefined)
  })

  it('stream from a vendor of another format', async () => {
    const runner = openai('c').chat.completions.stream({
      ...ask,
      stream_options: { include_usage: true },
    })
    const final = await runner.finalChatCompletion()
    expect(final.choices[0]?.message.content).toBe('Hello from C')
    expect(final.choices[0]?.finish_reason).toBe('stop')
    expect(final.usage?.completion_tokens).toBe(5)
  })

  it('[VendorAConfig.model] ask the model that the provider is pinned to', async () => {
    await openai('pinned').chat.completions.create(ask)
    expect(lastCall(a)?.body.model).toBe('pinned-model')
  })

  it('[LLMProvider.path] go to the configured path, without the query of the client', async () => {
    const { status } = await fetch(`${base('fixed')}/v1/anything?x=1`, {
      method: 'POST',
      body: JSON.stringify(ask),
    })
    expect(status).toBe(200)
    expect(lastCall(a)?.path).toBe('/v1/chat/completions')
  })
})

describe('requests in the Messages format', () => {
  it('[RouteType=Messages] [LLMProvider.vendorC] reach a vendor of the format untouched', async () => {
    const extra = { ...askC, x_kept: 1 }
    a.answer = completes('x')
    const { content, usage } = await anthropic('c').messages.create(askC)
    expect(content).toEqual([{ type: 'text', text: 'Hello from C' }])
    expect(usage.output_tokens).toBe(5)
    expect(lastCall(c)?.text).toBe(JSON.stringify(askC))
    const refused = await fetch(`${base('c')}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify(extra),
    })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ error: { type: 'invalid_request_error' } })
  })

  it('stream from a vendor of the format', async () => {
    const message = await anthropic('c').messages.stream(askC).finalMessage()
    expect(message.content).toEqual([{ type: 'text', text: 'Hello from C' }])
    expect(message.stop_reason).toBe('end_turn')
  })

  it('reach a vendor of another format, whole and streamed', async () => {
    const whole = await anthropic('a').messages.create({ ...askC, system: 'Be kind.' })
    expect(whole.content).toEqual([{ type: 'text', text: 'Hello from A' }])
    expect(whole.usage).toMatchObject({ input_tokens: 11, output_tokens: 7 })
    expect(lastCall(a)?.path).toBe('/v1/chat/completions')
    expect(lastCall(a)?.body.messages).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    ])
    const streamed = await anthropic('a').messages.stream(askC).finalMessage()
    expect(streamed.content).toEqual([{ type: 'text', text: 'Hello from A' }])
    expect(streamed.usage).toMatchObject({ input_tokens: 11, output_tokens: 7 })
  })
})

describe('requests in other formats', () => {
  it('[RouteType=Responses] reach a vendor of the format, and one of another', async () => {
    const native = await openai('a').responses.create({ model: 'm-1', input: 'Hello' })
    expect(native.output_text).toBe('Hello from A')
    const made = await openai('c').responses.create({ model: 'm-1', input: 'Hello' })
    expect(made.output_text).toBe('Hello from C')
    expect(made.status).toBe('completed')
    const stream = openai('c').responses.stream({ model: 'm-1', input: 'Hello' })
    const final = await stream.finalResponse()
    expect(final.output_text).toBe('Hello from C')
  })

  it('[RouteType=Embeddings] embeddings reach a vendor that has them, and are refused otherwise', async () => {
    const request = { model: 'e-1', input: ['one', 'two'], encoding_format: 'float' as const }
    const { data, usage } = await openai('a').embeddings.create(request)
    expect(data.map(({ embedding }) => embedding)).toEqual([
      [0.5, 0],
      [0.5, 1],
    ])
    expect(usage.prompt_tokens).toBe(4)
    const refused = openai('c').embeddings.create(request)
    await expect(refused).rejects.toMatchObject({ status: 400 })
    await expect(refused).rejects.toThrow(/unsupported conversion/)
  })

  it('[RouteType=VendorCTokenCount] tokens are counted by the vendor, or by the gateway if it cannot', async () => {
    const request = { model: 'gpt-4o', messages: [{ role: 'user' as const, content: 'Hello' }] }
    expect(await anthropic('c').messages.countTokens(request)).toEqual({ input_tokens: 42 })
    expect(lastCall(c)?.path).toBe('/v1/messages/count_tokens')
    expect(await anthropic('a').messages.countTokens(request)).toEqual({ input_tokens: 17 })
    expect(lastCall(a)?.path).toBe('/v1/responses/input_tokens')
    // The server lacks the path. 3 for the whole, 4 for the message, 1 for its text.
    a.next.push(failsA(404, 'not here'))
    expect(await anthropic('a').messages.countTokens(request)).toEqual({ input_tokens: 8 })
  })

  it('[RouteType=Models] list the names that the gateway takes', async () => {
    const { data: aliases } = await openai('shaped').models.list()
    expect(aliases.map(({ id }) => id)).toEqual(['fast'])
    const { data: pinned } = await openai('pinned').models.list()
    expect(pinned).toMatchObject([{ id: 'pinned-model', object: 'model', owned_by: 'openai' }])
  })

  it('[RouteType=Passthrough] pass as they are', async () => {
    a.answer = (call, response) => response.end(`${call.method} ${call.path} ${call.text}`)
    const body = 'no json at all'
    const answer = await fetch(`${base('a')}/raw?x=1`, { method: 'POST', body })
    // The simulator refuses what is not its interface; that answer, too, comes back as it is.
    expect(answer.status).toBe(400)
    expect(lastCall(a)).toMatchObject({ method: 'POST', path: '/a/raw?x=1', text: body })
    expect(lastCall(a)?.headers.authorization).toBe('Bearer gateway-key')
  })
})

describe('numbers that a double cannot hold', () => {
  const text = '{"model":"m-1","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]'
  const limit = '"parameters":{"type":"object","properties":{"id":{"maximum":9223372036854775807}}}'
  const tool = `"tools":[{"type":"function","function":{"name":"find",${limit}}}]`
  const send = (name: string, more: string) =>
    fetch(`${base(name)}/v1/chat/completions`, { method: 'POST', body: `${text},${more}}` })

  it('reach the vendor unchanged, even if the body is changed or translated', async () => {
    await send('shaped', `"seed":12345678901234567890,"top_p":0.5,"x":[1e400,-0.25]`)
    expect(lastCall(a)?.text).toContain('"seed":12345678901234567890,"top_p":0.5,"x":[1e400,-0.25]')
    await send('c', tool)
    expect(lastCall(c)?.text).toContain('"maximum":9223372036854775807')
  })

  it('reach the client unchanged in tool calls', async () => {
    c.answer = (_, response) => {
      const input = '"id":"t","name":"find","input":{"id":1234567890123456789}'
      const head = '"id":"m","type":"message","role":"assistant","model":"m-1"'
      const usage = '"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}'
      response.setHeader('content-type', 'application/json')
      response.end(`{${head},"content":[{"type":"tool_use",${input}}],${usage}}`)
    }
    const answer = (await (await send('c', tool)).json()) as OpenAI.ChatCompletion
    const [call] = answer.choices[0]?.message.tool_calls ?? []
    expect(call).toMatchObject({ function: { arguments: '{"id":1234567890123456789}' } })
  })
})
