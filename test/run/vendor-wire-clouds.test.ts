/** What each vendor's interface demands: paths, credentials, fields, errors, embeddings, counts. */
import { describe, expect, it } from 'vitest'
import { converses, failsF, frame, openFrames } from '../support/vendors/vendor-f.ts'
import { anthropic, chat, fleet, messages, openai, schema } from './vendor-wire-rig.ts'

describe('vendorE', () => {
  const models = '/v1/projects/my-project/locations/us-central1/publishers'

  it('[LLMProvider.vendorE] [VendorEConfig.projectId] [VendorEConfig.region] receives each model family under its publisher', async () => {
    await chat('e', 'claude-sonnet-4-20250514')
    expect(fleet.lastCall('e')?.path).toBe(
      `${models}/anthropic/models/claude-sonnet-4@20250514:rawPredict`,
    )
    await anthropic('e')
      .messages.stream({ model: 'anthropic/claude-x', max_tokens: 9, messages })
      .done()
    expect(fleet.lastCall('e')?.path).toBe(`${models}/anthropic/models/claude-x:streamRawPredict`)
    expect(fleet.lastCall('e')?.body).not.toHaveProperty('model')
    await chat('e', 'google/gemini-2.5-pro')
    expect(fleet.lastCall('e')?.path).toBe(`${models}/google/models/gemini-2.5-pro:generateContent`)
    await chat('e', 'meta/llama-3.3-70b')
    expect(fleet.lastCall('e')?.path).toBe(
      '/v1/projects/my-project/locations/us-central1/endpoints/openapi/chat/completions',
    )
  })

  it('[VendorEConfig.model] asks the model that the provider is pinned to', async () => {
    await chat('e-pinned', 'gpt-4o')
    expect(fleet.lastCall('e')?.path).toBe(
      '/v1/projects/my-project/locations/global/publishers/anthropic/models/claude-opus-4@20250514:rawPredict',
    )
  })

  it('does not receive fields of the format that it does not know', async () => {
    const cache_control = { type: 'ephemeral' as const, scope: 'global' }
    const system = [{ type: 'text' as const, text: 'Be brief.', cache_control }]
    const request = { model: 'claude-x', max_tokens: 9, messages, system }
    const { content } = await anthropic('e').messages.create(request)
    expect(content).toEqual([{ type: 'text', text: 'Hello from E' }])
  })

  it('counts tokens of one model family, and returns embeddings, in base64 if requested', async () => {
    const counted = await anthropic('e').messages.countTokens({ model: 'claude-x', messages })
    expect(counted).toEqual({ input_tokens: 42 })
    expect(fleet.lastCall('e')?.path).toBe(`${models}/anthropic/models/count-tokens:rawPredict`)
    const request = { model: 'text-embedding-005', input: ['one', 'two'], dimensions: 2 }
    // The SDK asks for text, which is smaller, and decodes it.
    const { data, usage } = await openai('e').embeddings.create(request)
    expect(data.map(({ embedding }) => [...embedding])).toEqual([
      [0.25, 0],
      [0.25, 1],
    ])
    expect(usage).toEqual({ prompt_tokens: 6, total_tokens: 6 })
    expect(fleet.lastCall('e')?.body.parameters).toEqual({ outputDimensionality: 2 })
  })
})

const claude = 'anthropic.claude-sonnet-4-20250514-v1:0'

describe('vendorF', () => {
  it('[LLMProvider.vendorF] [VendorFConfig.region] [BackendAuth.aws] [AwsAuth.secretRef] receives signed requests at the path of the model', async () => {
    await chat('f', claude)
    expect(fleet.lastCall('f')?.path).toBe(`/model/${claude}/converse`)
    expect(fleet.lastCall('f')?.headers.authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-central-1\/bedrock\/aws4_request/,
    )
    await openai('f').chat.completions.stream({ model: claude, messages }).done()
    expect(fleet.lastCall('f')?.path).toBe(`/model/${claude}/converse-stream`)
    const profile = 'arn:aws:bedrock:eu-central-1:1:application-inference-profile/abc'
    await chat('f', profile)
    expect(fleet.lastCall('f')?.path).toBe(`/model/${profile.replace('/', '%2F')}/converse`)
    // The region by default; this simulator stands in another.
    await expect(chat('f-default', claude)).rejects.toThrow(/us-east-1\/bedrock/)
  })

  it('is asked to cite a document if the client wants that', async () => {
    const source = { type: 'text' as const, media_type: 'text/plain' as const, data: 'Facts.' }
    const document = { type: 'document' as const, source, citations: { enabled: true } }
    const content = [document, { type: 'text' as const, text: 'What?' }]
    const request = { model: claude, max_tokens: 9, messages: [{ role: 'user' as const, content }] }
    await anthropic('f').messages.create(request)
    expect(fleet.lastCall('f')?.body.messages).toMatchObject([
      { content: [{ document: { citations: { enabled: true } } }, { text: 'What?' }] },
    ])
  })

  it('accepts an API key in place of a signature', async () => {
    await chat('f-key', claude)
    expect(fleet.lastCall('f')?.headers.authorization).toBe('Bearer gateway-key')
    expect(fleet.lastCall('f')?.headers['x-amz-date']).toBe(undefined)
  })

  it('[VendorFConfig.model] [VendorFConfig.guardrail] [AWSGuardrailConfig.identifier] [AWSGuardrailConfig.version] asks the model and the guardrail of the provider', async () => {
    await chat('f-pinned', 'gpt-4o')
    expect(fleet.lastCall('f')?.path).toBe('/model/amazon.nova-pro-v1:0/converse')
    expect(fleet.lastCall('f')?.body.guardrailConfig).toEqual({
      guardrailIdentifier: 'gr-1',
      guardrailVersion: 'DRAFT',
      trace: 'enabled',
    })
    await chat('f', claude)
    expect(fleet.lastCall('f')?.body).not.toHaveProperty('guardrailConfig')
    fleet.vendors.f.next.push(
      converses({ texts: ['Sorry.'], stopReason: 'guardrail_intervened' }),
      converses({ texts: ['Sorry.'], stopReason: 'guardrail_intervened' }),
    )
    const { choices } = await chat('f-pinned', 'gpt-4o')
    expect(choices[0]?.finish_reason).toBe('content_filter')
    const stopped = await anthropic('f-pinned')
      .messages.stream({ model: 'x', max_tokens: 9, messages })
      .finalMessage()
    expect(stopped.stop_reason).toBe('refusal')
  })

  it('receives valid tool names, and clients get their own names back', async () => {
    const call = { id: 'tooluse_1', name: 'find_it', input: { a: 1 } }
    fleet.vendors.f.next.push(converses({ texts: ['Well'], call }), converses({ call }))
    const whole = await chat('f', claude, { tools: schema({}) })
    const [asked] = whole.choices[0]?.message.tool_calls ?? []
    expect(asked).toMatchObject({ id: 'tooluse_1', function: { name: 'find.it' } })
    const streamed = await openai('f')
      .chat.completions.stream({ model: claude, messages, tools: schema({}) })
      .finalChatCompletion()
    expect(streamed.choices[0]?.message.tool_calls).toMatchObject([
      { id: 'tooluse_1', function: { name: 'find.it', arguments: '{"a":1}' } },
    ])
  })

  it('returns reasoning, whole and in a stream', async () => {
    const thinking = { type: 'enabled' as const, budget_tokens: 2000 }
    const request = { model: claude, max_tokens: 4000, messages, thinking }
    const wanted = [
      { type: 'thinking', thinking: 'Hm, so.', signature: 'c2ln' },
      { type: 'text', text: 'Yes.' },
    ]
    const answer = converses({ thoughts: ['Hm, ', 'so.'], texts: ['Yes.'] })
    fleet.vendors.f.next.push(answer, answer)
    expect((await anthropic('f').messages.create(request)).content).toEqual(wanted)
    expect(fleet.lastCall('f')?.body.additionalModelRequestFields).toEqual({ thinking })
    const streamed = await anthropic('f').messages.stream(request).finalMessage()
    expect(streamed.content).toEqual(wanted)
  })

  it('returns its errors, also in the middle of a stream', async () => {
    fleet.vendors.f.next.push(
      failsF(400, 'ValidationException', 'too long'),
      (_, response) => {
        openFrames(response)
        response.write(frame('messageStart', { role: 'assistant' }))
        response.end(frame('throttlingException', { message: 'slow down' }, 'exception'))
      },
      (_, response) => {
        openFrames(response)
        const bytes = frame('messageStart', { role: 'assistant' })
        response.write(bytes.subarray(0, bytes.length - 5), () => response.destroy())
      },
      (_, response) => {
        openFrames(response)
        const bytes = Buffer.from(frame('messageStart', { role: 'assistant' }))
        bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
        response.end(bytes)
      },
    )
    await expect(chat('f', claude)).rejects.toMatchObject({ status: 400, message: /too long/ })
    const stream = () => openai('f').chat.completions.stream({ model: claude, messages }).done()
    await expect(stream()).rejects.toThrow(/slow down/)
    await expect(stream()).rejects.toThrow(/cut off/)
    await expect(stream()).rejects.toThrow(/event stream/)
  })

  it('counts tokens of one model family, and returns embeddings of each', async () => {
    const counted = await anthropic('f').messages.countTokens({ model: claude, messages })
    expect(counted).toEqual({ input_tokens: 77 })
    expect(fleet.lastCall('f')?.path).toBe(`/model/${claude}/count-tokens`)
    const local = await anthropic('f').messages.countTokens({ model: 'amazon.nova-x', messages })
    expect(local.input_tokens).toBeGreaterThan(7)
    expect(fleet.lastCall('f')?.path).toBe(`/model/${claude}/count-tokens`)
    const embed = async (model: string, input: string | string[]) => {
      const { data, usage } = await openai('f').embeddings.create({ model, input })
      return { vectors: data.map(({ embedding }) => [...embedding]), tokens: usage.prompt_tokens }
    }
    expect(await embed('amazon.titan-embed-text-v2:0', 'one')).toEqual({
      vectors: [[0.75, 0.5]],
      tokens: 5,
    })
    expect(await embed('cohere.embed-v4:0', ['one', 'two'])).toEqual({
      vectors: [
        [0.125, 0],
        [0.125, 1],
      ],
      tokens: 6,
    })
    expect(await embed('amazon.nova-2-embeddings-v1:0', 'one')).toEqual({
      vectors: [[0.5, 1]],
      tokens: 6,
    })
    await expect(embed('amazon.titan-embed-text-v2:0', ['one', 'two'])).rejects.toMatchObject({
      status: 400,
    })
  })
})
