/** What each vendor's interface demands: paths, credentials, fields, errors, embeddings, counts. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { AzureOpenAI } from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { useAuthority, useFixture } from '../support/fixture.ts'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { startVendorB } from '../support/vendors/vendor-b.ts'
import { failsD } from '../support/vendors/vendor-d.ts'
import { converses, failsF, frame, openFrames } from '../support/vendors/vendor-f.ts'

const signed = { auth: { aws: { secretRef: { name: 'aws' } } } }
const endpoint = 'https://unused.example'
const project = { projectId: 'my-project', region: 'us-central1' }
const guardrail = { identifier: 'gr-1', version: 'DRAFT' }

const authority = useAuthority()
/** vendorB where nothing but its endpoint says where it is. */
const ownHost = useFixture(() => startVendorB(0, authority.issue(['localhost'])))
const trusted = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'ca' },
  data: { 'ca.crt': authority.certificate },
}
const fleet = useFleet(({ at, region }) => {
  const named = { endpoint, deploymentName: 'prod' }
  return [
    [trusted],
    reached(
      'b-own',
      { vendorB: { endpoint: `https://localhost:${ownHost.port}` } },
      { tls: { caCertificateRefs: [{ name: 'ca' }] } },
    ),
    reached('b', { vendorB: { endpoint }, ...at('b') }),
    reached('b-named', { vendorB: named, ...at('b') }),
    reached('b-preview', { vendorB: { ...named, apiVersion: 'preview' }, ...at('b') }),
    reached('b-dated', { vendorB: { ...named, apiVersion: '2024-10-21' }, ...at('b') }),
    reached(
      'b-token',
      { vendorB: { endpoint }, ...at('b') },
      { auth: { key: 'Bearer eyJh.eyJz.c2ln' } },
    ),
    reached('b-path', { vendorB: { endpoint }, ...at('b'), path: '/openai/v1/chat/completions' }),
    reached('c-pinned', { vendorC: { model: 'claude-pinned' }, ...at('c') }),
    reached('d', { vendorD: {}, ...at('d') }, { auth: { key: 'AIzaKey' } }),
    reached('d-pinned', { vendorD: { model: 'gemini-pinned' }, ...at('d') }),
    reached('e', { vendorE: project, ...at('e') }),
    reached('e-pinned', {
      vendorE: { ...project, region: 'global', model: 'claude-opus-4-20250514' },
      ...at('e'),
    }),
    reached('f', { vendorF: { region }, ...at('f') }, signed),
    reached(
      'f-pinned',
      { vendorF: { region, model: 'amazon.nova-pro-v1:0', guardrail }, ...at('f') },
      signed,
    ),
    reached('f-key', { vendorF: { region }, ...at('f') }),
    reached('f-default', { vendorF: {}, ...at('f') }, signed),
  ]
})
beforeEach(() => fleet.forget())

const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: fleet.base(name), apiKey: 'client-key', maxRetries: 0 })

const messages = [{ role: 'user' as const, content: 'Hello' }]
const chat = (name: string, model: string, more: object = {}) =>
  openai(name).chat.completions.create({ model, messages, ...more })
const schema = (more: object) => [
  {
    type: 'function' as const,
    function: { name: 'find.it', parameters: { type: 'object', ...more } },
  },
]

describe('vendorB', () => {
  const pathOf = async (name: string) => {
    await chat(name, 'gpt-4o')
    return fleet.lastCall('b')?.path
  }

  it('[VendorBConfig.apiVersion] decides the path by the version of the API', async () => {
    expect(await pathOf('b')).toBe('/openai/v1/chat/completions')
    expect(await pathOf('b-preview')).toBe('/openai/v1/chat/completions?api-version=preview')
    expect(await pathOf('b-dated')).toBe(
      '/openai/deployments/prod/chat/completions?api-version=2024-10-21',
    )
    await openai('b-dated').responses.create({ model: 'gpt-4o', input: 'Hello' })
    expect(fleet.lastCall('b')?.path).toBe('/openai/responses?api-version=2024-10-21')
    expect(await pathOf('b-path')).toBe('/openai/v1/chat/completions')
  })

  it('[VendorBConfig.deploymentName] asks for the deployment, which is the model where the path has none', async () => {
    await chat('b', 'gpt-4o')
    expect(fleet.lastCall('b')?.body.model).toBe('gpt-4o')
    await chat('b-named', 'gpt-4o')
    expect(fleet.lastCall('b')?.body.model).toBe('prod')
    await openai('b-dated').responses.create({ model: 'gpt-4o', input: 'Hello' })
    expect(fleet.lastCall('b')?.body.model).toBe('prod')
  })

  it('[LLMProvider.vendorB] [VendorBConfig.endpoint] is reached by TLS at its endpoint, whose scheme is taken off', async () => {
    const answer = await chat('b-own', 'gpt-4o')
    expect(answer.choices[0]?.message.content).toBe('Hello from B')
    expect(ownHost.calls.at(-1)?.path).toBe('/openai/v1/chat/completions')
    expect(ownHost.calls.at(-1)?.headers.host).toBe(`localhost:${ownHost.port}`)
  })

  it('has its own version of the API, whatever that of the client is', async () => {
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

  it('gets keys in a header of its own, and tokens of the directory as such', async () => {
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

  it('gives embeddings, and counts tokens here', async () => {
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
  it('[LLMProvider.vendorD] gets the native format below the path of the model, its key in a header of its own', async () => {
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

  it('gets schemas of tools in the subset that it knows', async () => {
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

  it('gets nothing of a query that means something to another vendor only', async () => {
    const request = { model: 'gemini-2.5-flash', max_tokens: 9, messages }
    const { content } = await anthropic('d').beta.messages.create(request)
    expect(content).toMatchObject([{ type: 'text', text: 'Hello from D' }])
    expect(fleet.lastCall('d')?.path).toBe('/v1beta/models/gemini-2.5-flash:generateContent')
  })

  it('tells its errors and what it has counted', async () => {
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

  it('gives embeddings', async () => {
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

describe('vendorE', () => {
  const models = '/v1/projects/my-project/locations/us-central1/publishers'

  it('[LLMProvider.vendorE] [VendorEConfig.projectId] [VendorEConfig.region] gets each family of models below its publisher', async () => {
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

  it('keeps what clients of the format may send and this vendor does not know from it', async () => {
    const cache_control = { type: 'ephemeral' as const, scope: 'global' }
    const system = [{ type: 'text' as const, text: 'Be brief.', cache_control }]
    const request = { model: 'claude-x', max_tokens: 9, messages, system }
    const { content } = await anthropic('e').messages.create(request)
    expect(content).toEqual([{ type: 'text', text: 'Hello from E' }])
  })

  it('counts tokens of the one family, and gives embeddings, as text where the client wants that', async () => {
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
  it('[LLMProvider.vendorF] [VendorFConfig.region] [BackendAuth.aws] [AwsAuth.secretRef] gets signed requests below the path of the model', async () => {
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

  it('takes a key of its own in place of a signature', async () => {
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

  it('gets names of tools that it takes, and clients get theirs back', async () => {
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

  it('tells thoughts, whole and in a stream', async () => {
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

  it('tells its errors, also in the middle of a stream', async () => {
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

  it('counts tokens of one family, and gives embeddings of each family', async () => {
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
