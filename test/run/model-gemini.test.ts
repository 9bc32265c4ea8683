/** Clients of Gemini's API, to every vendor: the model and the wish for a stream are in the path. */
import { FunctionCallingConfigMode, type GenerateContentResponse, GoogleGenAI } from '@google/genai'
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { json, openStream, sendEvent } from '../support/vendors/vendor.ts'
import { calls } from '../support/vendors/vendor-a.ts'
import { callsC } from '../support/vendors/vendor-c.ts'
import { callsD, errorD, failsD } from '../support/vendors/vendor-d.ts'
import { converses } from '../support/vendors/vendor-f.ts'

const ssn = '123-45-6789'
const email = 'ann@example.com'
const guards = {
  promptGuard: {
    request: [{ regex: { builtins: ['Ssn'] } }],
    response: [{ regex: { builtins: ['Email'] } }],
  },
}
const key = { key: 'gateway-key' }

const fleet = useFleet(({ at, region }) => [
  reached('a', { vendorA: {}, ...at('a') }, { ai: undefined, auth: key }),
  reached('c', { vendorC: {}, ...at('c') }, { ai: undefined, auth: key }),
  reached('d-any', { vendorD: {}, ...at('d') }, { ai: undefined, auth: { key: 'AIzaGateway' } }),
  reached('d', { vendorD: {}, ...at('d') }, { ai: undefined, auth: { key: 'AIzaGateway' } }),
  reached(
    'd-alias',
    { vendorD: {}, ...at('d') },
    { ai: { modelAliases: { fast: 'gemini-2.5-flash' } }, auth: { key: 'AIzaGateway' } },
  ),
  reached('d-guarded', { vendorD: {}, ...at('d') }, { ai: guards, auth: { key: 'AIzaGateway' } }),
  reached('a-guarded', { vendorA: {}, ...at('a') }, { ai: guards, auth: key }),
  reached('f', { vendorF: { region }, ...at('f') }, { ai: undefined, auth: key }),
  reached('f-guarded', { vendorF: { region }, ...at('f') }, { ai: guards, auth: key }),
])
beforeEach(() => fleet.forget())

const client = (name: string) =>
  new GoogleGenAI({
    apiKey: 'client-key',
    httpOptions: { baseUrl: fleet.base(name), retryOptions: { attempts: 1 } },
  })

async function collect(stream: AsyncIterable<GenerateContentResponse>) {
  const all: GenerateContentResponse[] = []
  for await (const one of stream) all.push(one)
  return all
}

const ways = [
  ['a', 'a', 'gpt-5-mini', 'Hello from A'],
  ['c', 'c', 'claude-sonnet-4-5', 'Hello from C'],
  ['d', 'd', 'gemini-2.5-flash', 'Hello from D'],
  ['f', 'f', 'us.amazon.nova-lite-v1:0', 'Hello from F'],
] as const

describe('a Gemini client', () => {
  it.each(ways)('gets whole responses and streams of %s', async (name, letter, model, text) => {
    const contents = 'Hello'
    const whole = await client(name).models.generateContent({ model, contents })
    expect(whole.text).toBe(text)
    expect(whole.candidates?.[0]?.finishReason).toBe('STOP')
    expect(whole.usageMetadata?.promptTokenCount).toBeGreaterThan(0)
    const pieces = await collect(
      await client(name).models.generateContentStream({ model, contents }),
    )
    expect(pieces.map((piece) => piece.text ?? '').join('')).toBe(text)
    expect(pieces.at(-1)?.candidates?.[0]?.finishReason).toBe('STOP')
    expect(pieces.at(-1)?.usageMetadata?.candidatesTokenCount).toBeGreaterThan(0)
    for (const call of fleet.vendors[letter].calls) {
      expect(JSON.stringify(call.headers)).not.toContain('client-key')
      expect(call.path).not.toContain('client-key')
    }
  })

  it.each([
    ['a', 'a', 'gpt-5-mini', calls],
    ['c', 'c', 'claude-sonnet-4-5', callsC],
    ['d', 'd', 'gemini-2.5-flash', callsD],
    ['f', 'f', 'us.amazon.nova-lite-v1:0', (call: never) => converses({ call })],
  ] as const)(
    'calls functions of %s and sends their results',
    async (name, letter, model, answer) => {
      const call = { id: 'call_1', name: 'weather', input: { city: 'Bonn' } }
      const parameters = { type: 'OBJECT', properties: { city: { type: 'STRING' } } } as object
      const config = {
        systemInstruction: 'Be kind.',
        tools: [{ functionDeclarations: [{ name: 'weather', description: 'd', parameters }] }],
        toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
      }
      const first = { role: 'user', parts: [{ text: 'How is the weather?' }] }
      for (const isStream of [false, true]) {
        fleet.forget()
        fleet.vendors[letter].next.push(answer(call as never))
        const { models } = client(name)
        const pieces = isStream
          ? await collect(await models.generateContentStream({ model, contents: [first], config }))
          : [await models.generateContent({ model, contents: [first], config })]
        const parts = pieces.flatMap((piece) => piece.candidates?.[0]?.content?.parts ?? [])
        const called = parts.find((part) => part.functionCall)
        expect(called?.functionCall).toMatchObject({ name: 'weather', args: { city: 'Bonn' } })
        const result = {
          role: 'user',
          parts: [
            {
              functionResponse: {
                name: 'weather',
                ...(called?.functionCall?.id && { id: called.functionCall.id }),
                response: { output: 'sunny' },
              },
            },
          ],
        }
        const contents = [first, { role: 'model', parts }, result]
        const last = await models.generateContent({ model, contents, config })
        expect(last.text).toContain('Hello')
        expect(fleet.lastCall(letter)?.text).toContain('sunny')
        expect(fleet.lastCall(letter)?.text).toContain('Be kind.')
      }
    },
  )

  it('gets the model of an alias, which the path names', async () => {
    const response = await client('d-alias').models.generateContent({
      model: 'fast',
      contents: 'x',
    })
    expect(fleet.lastCall('d')?.path).toBe('/v1beta/models/gemini-2.5-flash:generateContent')
    expect(fleet.lastCall('d')?.body).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'x' }] }],
    })
    expect(response.modelVersion).toBe('fast')
  })

  it('gets a stream as one JSON array without alt=sse, and server-sent events with it', async () => {
    for (const [name, model] of ways) {
      const base = `${fleet.base(name)}/v1beta/models/${encodeURIComponent(ways.find(([one]) => one === name)?.[2] ?? model)}`
      const send = (query: string) =>
        fetch(`${base}:streamGenerateContent${query}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'x' }] }] }),
        })
      const array = await send('?key=client-key')
      expect(array.headers.get('content-type')).toBe('application/json')
      const text = await array.text()
      expect(text).toMatch(/^\[/)
      const events = JSON.parse(text) as { candidates: { content: { parts: object[] } }[] }[]
      expect(events.flatMap(({ candidates }) => candidates[0]?.content.parts)).toContainEqual({
        text: 'Hello ',
      })
      const sse = await send('?alt=sse')
      expect(sse.headers.get('content-type')).toBe('text/event-stream')
      expect(await sse.text()).toMatch(/^data: \{"candidates"/)
    }
  })

  it('gets a signature with a call of another vendor, so that Gemini accepts the history', async () => {
    fleet.vendors.a.next.push(calls({ id: 'call_1', name: 'f', input: {} }))
    const config = { tools: [{ functionDeclarations: [{ name: 'f' }] }] }
    const asked = { model: 'gpt-5-mini', contents: 'x', config }
    const parts = (await client('a').models.generateContent(asked)).candidates?.[0]?.content?.parts
    const result = { functionResponse: { name: 'f', response: { output: 'x' } } }
    const contents = [
      { role: 'user', parts: [{ text: 'x' }] },
      { role: 'model', parts: parts ?? [] },
      { role: 'user', parts: [result] },
    ]
    const model = 'gemini-3-pro-preview'
    expect((await client('d').models.generateContent({ model, contents })).text).toBe(
      'Hello from D',
    )
  })

  it('keeps the thoughts of Claude in the signature of a call, and Gemini never gets them', async () => {
    fleet.vendors.c.next.push((_, response) =>
      json(response, 200, {
        ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5' },
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
          { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
        ],
        ...{ stop_reason: 'tool_use', usage: { input_tokens: 3, output_tokens: 4 } },
      }),
    )
    const config = {
      tools: [{ functionDeclarations: [{ name: 'f' }] }],
      thinkingConfig: { thinkingBudget: 2_000 },
      maxOutputTokens: 9_000,
    }
    const asked = { model: 'claude-sonnet-4-5', contents: 'x', config }
    const first = await client('c').models.generateContent(asked)
    const parts = first.candidates?.[0]?.content?.parts?.filter((part) => part.thought !== true)
    const result = { functionResponse: { id: 'toolu_1', name: 'f', response: { output: 'x' } } }
    const contents = [
      { role: 'user', parts: [{ text: 'x' }] },
      { role: 'model', parts: parts ?? [] },
      { role: 'user', parts: [result] },
    ]
    await client('c').models.generateContent({ ...asked, contents })
    expect(fleet.lastCall('c')?.body.messages).toMatchObject([
      {},
      { content: [{ type: 'thinking', thinking: 'Hm.', signature: 'c2ln' }, { type: 'tool_use' }] },
      {},
    ])
    await client('d').models.generateContent({
      model: 'gemini-3-pro-preview',
      contents,
      config: {},
    })
    expect(fleet.lastCall('d')?.text).toContain('skip_thought_signature_validator')
    expect(fleet.lastCall('d')?.text).not.toContain(Buffer.from('sluice').toString('base64'))
  })

  it('sends images to vendors that read them', async () => {
    const data = Buffer.from('image').toString('base64')
    const parts = [{ text: 'What is it?' }, { inlineData: { mimeType: 'image/png', data } }]
    for (const [name, letter, model] of ways) {
      await client(name).models.generateContent({ model, contents: [{ role: 'user', parts }] })
      expect(fleet.lastCall(letter)?.text).toContain(data)
    }
  })

  it('reaches Gemini byte for byte, with parts that the gateway does not know', async () => {
    fleet.vendors.d.next.push((_, response) => json(response, 200, { candidates: [] }))
    const body =
      '{"contents": [{"role": "user", "parts": [{"toolCall": {"id": "1"}, "thoughtSignature": "c2ln"}, {"text": "x"}]}]}'
    const url = `${fleet.base('d-any')}/v1beta/models/gemini-2.5-flash:generateContent`
    await fetch(url, { method: 'POST', body })
    expect(fleet.lastCall('d')?.text).toBe(body)
  })

  it('makes embeddings, at Gemini and at vendors with the format of vendorA', async () => {
    const { embeddings } = await client('a').models.embedContent({
      model: 'text-embedding-3-small',
      contents: ['one', 'two'],
      config: { outputDimensionality: 2 },
    })
    expect(embeddings?.length).toBeGreaterThan(0)
    expect(embeddings?.[0]?.values?.length).toBeGreaterThan(0)
    expect(fleet.lastCall('a')?.body).toMatchObject({ input: ['one', 'two'], dimensions: 2 })
    const failed = await client('c')
      .models.embedContent({ model: 'm', contents: 'x' })
      .catch((error: unknown) => error)
    expect(failed).toMatchObject({ status: 400 })
    expect(String(failed)).toContain('unsupported conversion')
  })

  it('counts tokens at the vendor, or in the gateway', async () => {
    for (const [name, , model] of ways) {
      const { totalTokens } = await client(name).models.countTokens({
        model,
        contents: 'How many?',
      })
      expect(totalTokens).toBeGreaterThan(0)
    }
    expect(fleet.vendors.d.calls.map(({ path }) => path)).toEqual([
      '/v1beta/models/gemini-2.5-flash:countTokens',
    ])
  })

  it('gets errors in the form of the API', async () => {
    const failure = (name: string, model: string) =>
      client(name)
        .models.generateContent({ model, contents: 'x' })
        .catch((error: unknown) => error)
    fleet.vendors.d.next.push(failsD(429, 'quota'))
    expect(await failure('d', 'gemini-2.5-flash')).toMatchObject({ status: 429 })
    fleet.vendors.c.next.push((_, response) =>
      json(response, 429, { type: 'error', error: { type: 'rate_limit_error', message: 'slow' } }),
    )
    const limited = await failure('c', 'claude-sonnet-4-5')
    expect(limited).toMatchObject({ status: 429 })
    expect(String(limited)).toContain('RESOURCE_EXHAUSTED')
    expect(String(limited)).toContain('slow')
    const response = await fetch(`${fleet.base('a')}/v1beta/models/x:generateContent`, {
      method: 'POST',
      body: '{"contents": 7}',
    })
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: { code: 400, message: 'contents must be an array', status: 'INVALID_ARGUMENT' } },
    ])
  })

  it('gets an error as an element of the stream if the vendor fails in it', async () => {
    fleet.vendors.d.next.push((_, response) => {
      openStream(response)
      sendEvent(response, { candidates: [{ content: { parts: [{ text: 'a' }] }, index: 0 }] })
      sendEvent(response, errorD('overloaded', 503))
      response.end()
    })
    const response = await fetch(
      `${fleet.base('d')}/v1beta/models/gemini-2.5-flash:streamGenerateContent`,
      {
        method: 'POST',
        body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'x' }] }] }),
      },
    )
    const events = (await response.json()) as readonly object[]
    expect(events.at(-1)).toMatchObject({ error: { code: 503 } })
  })
})

describe('guards of Gemini clients', () => {
  it.each([
    ['d-guarded', 'd', 'gemini-2.5-flash'],
    ['a-guarded', 'a', 'gpt-5-mini'],
    ['f-guarded', 'f', 'us.amazon.nova-lite-v1:0'],
  ] as const)('read every text at %s', async (name, letter, model) => {
    const contents = [
      { role: 'user', parts: [{ text: `I am ${ssn}` }, { text: ` or ${ssn}` }] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
      {
        role: 'user',
        parts: [{ functionResponse: { name: 'f', response: { id: ssn, [ssn]: [{ name: ssn }] } } }],
      },
      {
        role: 'user',
        parts: [
          {
            inlineData: {
              mimeType: 'text/plain',
              data: Buffer.from(`Text ${ssn}`).toString('base64'),
            },
          },
        ],
      },
    ]
    const body = JSON.stringify({
      contents,
      system_instruction: { parts: [{ text: `You know ${ssn}` }] },
    })
    for (const verb of ['generateContent', 'streamGenerateContent?alt=sse', 'countTokens']) {
      const url = `${fleet.base(name)}/v1beta/models/${encodeURIComponent(model)}:${verb}`
      const response = await fetch(url, { method: 'POST', body })
      expect([verb, response.status, await response.text()]).toEqual([verb, 200, expect.anything()])
    }
    for (const { text } of fleet.vendors[letter].calls) {
      expect(text).not.toContain(ssn)
      expect(text).not.toContain(Buffer.from(`Text ${ssn}`).toString('base64'))
    }
  })

  it('mask whole responses and streams', async () => {
    fleet.vendors.d.answer = (call, response) => {
      const event = (text: string, more = {}) => ({
        candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }],
      })
      const last = { finishReason: 'STOP' }
      if (call.path.includes('stream')) {
        openStream(response)
        sendEvent(response, event('Ask ann@exa'))
        sendEvent(response, event('mple.com now', last))
        response.end()
      } else json(response, 200, event(`Ask ${email} now`, last))
    }
    const { models } = client('d-guarded')
    const asked = { model: 'gemini-2.5-flash', contents: 'x' }
    const whole = await models.generateContent(asked)
    expect(whole.text).toBe('Ask <EMAIL_ADDRESS> now')
    const pieces = await collect(await models.generateContentStream(asked))
    expect(pieces.map((piece) => piece.text ?? '').join('')).toBe('Ask <EMAIL_ADDRESS> now')
  })
})
