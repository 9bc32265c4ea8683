/** What each vendor's interface demands: paths, credentials, fields, errors, embeddings, counts. */
import OpenAI, { AzureOpenAI } from 'openai'
import { describe, expect, it } from 'vitest'
import { failsD } from '../support/vendors/vendor-d.ts'
import { anthropic, chat, fleet, messages, openai, ownHost, schema } from './vendor-wire-rig.ts'

describe('vendorB', () => {
  const pathOf = async (name: string) => {
    await chat(name, 'gpt-4o')
    return fleet.lastCall('b')?.path
  }

  it('[VendorBConfig.apiVersion] has a path that depends on the API version', async () => {
    expect(await pathOf('b')).toBe('/openai/v1/chat/completions')
    expect(await pathOf('b-preview')).toBe('/openai/v1/chat/completions?api-version=preview')
    expect(await pathOf('b-dated')).toBe(
      '/openai/deployments/prod/chat/completions?api-version=2024-10-21',
    )
    await openai('b-dated').responses.create({ model: 'gpt-4o', input: 'Hello' })
    expect(fleet.lastCall('b')?.path).toBe('/openai/responses?api-version=2024-10-21')
    expect(await pathOf('b-path')).toBe('/openai/v1/chat/completions')
  })

  it('[VendorBConfig.deploymentName] is asked for the deployment, by default named like the model', async () => {
    await chat('b', 'gpt-4o')
    expect(fleet.lastCall('b')?.body.model).toBe('gpt-4o')
    await chat('b-named', 'gpt-4o')
    expect(fleet.lastCall('b')?.body.model).toBe('prod')
    await openai('b-dated').responses.create({ model: 'gpt-4o', input: 'Hello' })
    expect(fleet.lastCall('b')?.body.model).toBe('prod')
  })

  it('[LLMProvider.vendorB] [VendorBConfig.endpoint] is reached by TLS at its endpoint, given with or without a scheme', async () => {
    const answer = await chat('b-own', 'gpt-4o')
    expect(answer.choices[0]?.message.content).toBe('Hello from B')
    expect(ownHost.calls.at(-1)?.path).toBe('/openai/v1/chat/completions')
    expect(ownHost.calls.at(-1)?.headers.host).toBe(`localhost:${ownHost.port}`)
  })

  it('gets its own API version, whatever the client sends', async () => {
    const client = new AzureOpenAI({
      baseURL: `${fleet.base('b-dated')}/openai`,
      apiKey: 'client-key',
      apiVersion: '2023-05-15',
      defaultQuery: { kept: '1' },
      maxRetries: 0,
    })
    await client.chat.completions.create({ model: 'gpt-4o', messages })
    expect(fleet.lastCall('b')?.path).toBe(
      '/openai/deployments/prod/chat/completions?api-version=2024-10-21&kept=1',
    )
    expect(fleet.lastCall('b')?.headers['api-key']).toBe('gateway-key')
  })

  it('gets keys in its own header, and directory tokens as bearer tokens', async () => {
    await chat('b-dated', 'gpt-4o')
    expect(fleet.lastCall('b')?.headers['api-key']).toBe('gateway-key')
    const client = new OpenAI({
      baseURL: `${fleet.base('b-token')}/v1`,
      apiKey: 'client-key',
      defaultHeaders: { 'api-key': 'of-the-client' },
    })
    await client.chat.completions.create({ model: 'gpt-4o', messages })
    expect(fleet.lastCall('b')?.headers).toMatchObject({ authorization: 'Bearer eyJh.eyJz.c2ln' })
    expect(fleet.lastCall('b')?.headers['api-key']).toBe(undefined)
  })

  it('returns embeddings; the gateway counts its tokens', async () => {
    const { data } = await openai('b-dated').embeddings.create({
      model: 'e-1',
      input: 'one',
      encoding_format: 'float',
    })
    expect(data[0]?.embedding).toEqual([0.5, 0])
    expect(fleet.lastCall('b')?.path).toBe(
      '/openai/deployments/prod/embeddings?api-version=2024-10-21',
    )
    const counted = await anthropic('b').messages.countTokens({ model: 'gpt-4o', messages })
    expect(counted).toEqual({ input_tokens: 8 })
  })
})

describe('vendorC', () => {
  it('[VendorCConfig.model] asks the model that the provider is pinned to, from any format', async () => {
    await chat('c-pinned', 'gpt-4o')
    expect(fleet.lastCall('c')?.body.model).toBe('claude-pinned')
    await anthropic('c-pinned').messages.create({ model: 'x', max_tokens: 9, messages })
    expect(fleet.lastCall('c')?.body.model).toBe('claude-pinned')
  })
})

describe('vendorD', () => {
  it('[LLMProvider.vendorD] receives its native format at the path of the model, with the key in its own header', async () => {
    await chat('d', 'gemini-2.5-flash', { max_tokens: 64, stop: ['x'], seed: 5 })
    const whole = fleet.lastCall('d')
    expect(whole?.path).toBe('/v1beta/models/gemini-2.5-flash:generateContent')
    expect(whole?.headers).toMatchObject({ 'x-goog-api-key': 'AIzaKey' })
    expect(whole?.headers.authorization).toBe(undefined)
    expect(whole?.body.generationConfig).toEqual({
      maxOutputTokens: 64,
      stopSequences: ['x'],
      seed: 5,
    })
    await openai('d').chat.completions.stream({ model: 'models/g-1', messages }).done()
    expect(fleet.lastCall('d')?.path).toBe('/v1beta/models/g-1:streamGenerateContent?alt=sse')
    await chat('d', 'tunedModels/mine')
    expect(fleet.lastCall('d')?.path).toBe('/v1beta/tunedModels/mine:generateContent')
  })

  it('[VendorDConfig.model] asks the model that the provider is pinned to', async () => {
    await chat('d-pinned', 'gpt-4o')
    expect(fleet.lastCall('d')?.path).toBe('/v1beta/models/gemini-pinned:generateContent')
    expect(fleet.lastCall('d')?.headers.authorization).toBe('Bearer gateway-key')
  })

  it('receives tool schemas in the subset that it supports', async () => {
    const pet = { type: 'object', properties: { id: { type: ['string', 'null'], format: 'uuid' } } }
    const list = { type: 'array', items: { $ref: '#/$defs/pet' }, uniqueItems: true }
    const tools = schema({
      properties: { pets: list },
      $defs: { pet },
      additionalProperties: false,
    })
    const answer = await chat('d', 'gemini-2.5-flash', { tools, tool_choice: 'required' })
    expect(answer.choices[0]?.message.content).toBe('Hello from D')
    expect(fleet.lastCall('d')?.body.toolConfig).toEqual({ functionCallingConfig: { mode: 'ANY' } })
  })

  it('does not receive query parameters that belong to another vendor', async () => {
    const request = { model: 'gemini-2.5-flash', max_tokens: 9, messages }
    const { content } = await anthropic('d').beta.messages.create(request)
    expect(content).toMatchObject([{ type: 'text', text: 'Hello from D' }])
    expect(fleet.lastCall('d')?.path).toBe('/v1beta/models/gemini-2.5-flash:generateContent')
  })

  it('returns its errors and its token usage', async () => {
    fleet.vendors.d.next.push(failsD(429, 'quota'))
    const refused = chat('d', 'gemini-2.5-flash')
    await expect(refused).rejects.toBeInstanceOf(OpenAI.RateLimitError)
    await expect(refused).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
    const { usage } = await chat('d', 'gemini-2.5-flash')
    expect(usage).toMatchObject({
      prompt_tokens: 13,
      completion_tokens: 8,
      prompt_tokens_details: { cached_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 2 },
    })
  })

  it('returns embeddings', async () => {
    const { data } = await openai('d').embeddings.create({
      model: 'gemini-embedding-001',
      input: ['one', 'two'],
      encoding_format: 'float',
    })
    expect(data.map(({ embedding }) => embedding)).toEqual([
      [0.5, 0],
      [0.5, 1],
    ])
    expect(fleet.lastCall('d')?.headers.authorization).toBe('Bearer AIzaKey')
  })
})
