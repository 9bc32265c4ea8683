/** Clients of Bedrock's API, to every vendor: Converse, and messages in InvokeModel. */
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  type ConverseStreamOutput,
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { policy, secret } from '../support/manifests.ts'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { json } from '../support/vendors/vendor.ts'
import { calls, completes } from '../support/vendors/vendor-a.ts'
import { callsC, says } from '../support/vendors/vendor-c.ts'
import { callsD, generates } from '../support/vendors/vendor-d.ts'
import { converses, failsF, frame, openFrames } from '../support/vendors/vendor-f.ts'

const ssn = '123-45-6789'
const key = { key: 'gateway-key' }
const guards = {
  promptGuard: {
    request: [{ regex: { builtins: ['Ssn'] } }],
    response: [{ regex: { builtins: ['Email'] } }],
  },
}
const claude = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'

const fleet = useFleet(({ at, region }) => [
  reached('a', { vendorA: {}, ...at('a') }, { ai: undefined, auth: key }),
  reached('c', { vendorC: {}, ...at('c') }, { ai: undefined, auth: key }),
  reached('d', { vendorD: {}, ...at('d') }, { ai: undefined, auth: { key: 'AIzaGateway' } }),
  reached('f', { vendorF: { region }, ...at('f') }, { ai: undefined, auth: key }),
  reached(
    'f-alias',
    { vendorF: { region }, ...at('f') },
    { ai: { modelAliases: { fast: claude } }, auth: key },
  ),
  ...(['a', 'c', 'd', 'f'] as const).map((letter) => {
    const vendors = { a: 'vendorA', c: 'vendorC', d: 'vendorD', f: 'vendorF' }
    const provider = { [vendors[letter]]: letter === 'f' ? { region } : {}, ...at(letter) }
    const auth = letter === 'd' ? { key: 'AIzaGateway' } : key
    return reached(`guarded-${letter}`, provider, { ai: guards, auth })
  }),
  reached('keyed', { vendorF: { region }, ...at('f') }, { ai: undefined, auth: key }),
  [
    policy('keyed', 'HTTPRoute/keyed', {
      traffic: { apiKeyAuthentication: { secretRef: { name: 'clients' } } },
    }),
    secret('clients', { ann: 'key-of-ann' }),
  ],
])
beforeEach(() => fleet.forget())

/** A client with a key, or one that signs its requests. */
const client = (name: string, token?: string) =>
  new BedrockRuntimeClient({
    endpoint: fleet.base(name),
    region: 'us-west-2',
    maxAttempts: 1,
    ...(token === undefined
      ? { credentials: { accessKeyId: 'client', secretAccessKey: 'client' } }
      : { token: { token }, authSchemePreference: ['httpBearerAuth'] }),
  })

const hello = [{ role: 'user' as const, content: [{ text: 'Hello' }] }]

async function collect<Item>(stream: AsyncIterable<Item> | undefined): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of stream ?? []) items.push(item)
  return items
}

/** The SDK reports an exception that comes first before it returns the stream. */
const streamed = async (name: string, command: ConverseStreamCommand) =>
  collect((await client(name).send(command)).stream)

const textOf = (events: readonly ConverseStreamOutput[]) =>
  events.map(({ contentBlockDelta }) => contentBlockDelta?.delta?.text ?? '').join('')

const ways = [
  ['a', 'a', 'gpt-5-mini', 'Hello from A'],
  ['c', 'c', 'claude-sonnet-4-5', 'Hello from C'],
  ['d', 'd', 'gemini-2.5-flash', 'Hello from D'],
  ['f', 'f', claude, 'Hello from F'],
] as const

describe('a Converse client', () => {
  it.each(ways)('gets whole responses and streams of %s', async (name, letter, modelId, text) => {
    const bedrock = client(name)
    const whole = await bedrock.send(new ConverseCommand({ modelId, messages: hello }))
    expect(whole.output?.message?.content).toEqual([{ text }])
    expect(whole.stopReason).toBe('end_turn')
    expect(whole.usage?.inputTokens).toBeGreaterThan(0)
    const command = new ConverseStreamCommand({ modelId, messages: hello })
    const events = await collect((await bedrock.send(command)).stream)
    expect(textOf(events)).toBe(text)
    expect(events[0]?.messageStart?.role).toBe('assistant')
    expect(events.filter((event) => event.contentBlockStop)).toHaveLength(1)
    expect(events.at(-2)?.messageStop?.stopReason).toBe('end_turn')
    expect(events.at(-1)?.metadata?.usage?.outputTokens).toBeGreaterThan(0)
    for (const call of fleet.vendors[letter].calls) {
      expect(JSON.stringify(call.headers)).not.toMatch(/AWS4-HMAC|Credential=client/)
    }
  })

  it.each([
    ['a', 'a', 'gpt-5-mini', calls],
    ['c', 'c', 'claude-sonnet-4-5', callsC],
    ['d', 'd', 'gemini-2.5-flash', callsD],
    ['f', 'f', claude, (call: never) => converses({ call })],
  ] as const)(
    'calls tools of %s and sends their results',
    async (name, letter, modelId, answer) => {
      const json = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
      const toolSpec = { name: 'weather', description: 'd', inputSchema: { json } }
      const base = {
        modelId,
        system: [{ text: 'Be kind.' }],
        toolConfig: { tools: [{ toolSpec }] },
      }
      for (const isStream of [false, true]) {
        fleet.forget()
        const called = { id: 'call_1', name: 'weather', input: { city: 'Bonn' } }
        fleet.vendors[letter].next.push(answer(called as never))
        const bedrock = client(name)
        const asked = { ...base, messages: hello }
        let id: string | undefined
        if (isStream) {
          const { stream } = await bedrock.send(new ConverseStreamCommand(asked))
          const events = await collect(stream)
          id = events.find((one) => one.contentBlockStart)?.contentBlockStart?.start?.toolUse
            ?.toolUseId
          const input = events
            .map((one) => one.contentBlockDelta?.delta?.toolUse?.input ?? '')
            .join('')
          expect(JSON.parse(input)).toEqual({ city: 'Bonn' })
          expect(events.find((one) => one.messageStop)?.messageStop?.stopReason).toBe('tool_use')
        } else {
          const response = await bedrock.send(new ConverseCommand(asked))
          const call = response.output?.message?.content?.find((block) => block.toolUse)?.toolUse
          expect(call).toMatchObject({ name: 'weather', input: { city: 'Bonn' } })
          id = call?.toolUseId
        }
        const toolUse = { toolUseId: id, name: 'weather', input: { city: 'Bonn' } }
        const toolResult = { toolUseId: id, content: [{ json: { sky: 'sunny' } }] }
        const messages = [
          ...hello,
          { role: 'assistant' as const, content: [{ toolUse }] },
          { role: 'user' as const, content: [{ toolResult }] },
        ]
        const last = await bedrock.send(new ConverseCommand({ ...base, messages }))
        expect(last.output?.message?.content?.[0]?.text).toContain('Hello')
        expect(fleet.lastCall(letter)?.text).toContain('sunny')
        expect(fleet.lastCall(letter)?.text).toContain('Be kind.')
      }
    },
  )

  it('gets the model of an alias, and ARNs with slashes', async () => {
    await client('f-alias').send(new ConverseCommand({ modelId: 'fast', messages: hello }))
    expect(fleet.lastCall('f')?.path).toBe(`/model/${claude}/converse`)
    const modelId = 'arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.x.y-v1:0'
    await client('f').send(new ConverseCommand({ modelId, messages: hello }))
    expect(decodeURIComponent(fleet.lastCall('f')?.path ?? '')).toBe(`/model/${modelId}/converse`)
  })

  it('gets errors that the SDK knows, whole and in streams', async () => {
    const failure = (name: string, modelId: string) =>
      client(name)
        .send(new ConverseCommand({ modelId, messages: hello }))
        .catch((error: unknown) => error)
    fleet.vendors.f.next.push(failsF(429, 'ThrottlingException', 'slow down'))
    expect(await failure('f', claude)).toMatchObject({ name: 'ThrottlingException' })
    fleet.vendors.c.next.push((_, response) =>
      json(response, 429, { type: 'error', error: { type: 'rate_limit_error', message: 'slow' } }),
    )
    expect(await failure('c', 'm')).toMatchObject({ name: 'ThrottlingException', message: 'slow' })
    fleet.vendors.f.next.push((_, response) => {
      openFrames(response)
      response.write(frame('messageStart', { role: 'assistant' }))
      response.end(frame('throttlingException', { message: 'too many' }, 'exception'))
    })
    const command = new ConverseStreamCommand({ modelId: claude, messages: hello })
    await expect(streamed('f', command)).rejects.toMatchObject({ name: 'ThrottlingException' })
    fleet.vendors.c.next.push((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const error = { type: 'overloaded_error', message: 'Overloaded' }
      response.end(`event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`)
    })
    const other = new ConverseStreamCommand({ modelId: 'm', messages: hello })
    await expect(streamed('c', other)).rejects.toMatchObject({
      name: 'ServiceUnavailableException',
      message: 'Overloaded',
    })
  })

  it('gets an exception instead of the end of a stream that was cut off', async () => {
    fleet.vendors.f.next.push((_, response) => {
      openFrames(response)
      response.write(frame('messageStart', { role: 'assistant' }))
      const delta = { text: 'partial' }
      response.end(frame('contentBlockDelta', { contentBlockIndex: 0, delta }))
    })
    const command = new ConverseStreamCommand({ modelId: claude, messages: hello })
    await expect(streamed('f', command)).rejects.toMatchObject({
      name: expect.stringMatching(/InternalServerException|ModelStreamErrorException/),
    })
    fleet.vendors.a.next.push((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const choices = [{ index: 0, delta: { content: 'partial' } }]
      response.end(`data: ${JSON.stringify({ id: 'x', model: 'm', choices })}\n\n`)
    })
    const other = new ConverseStreamCommand({ modelId: 'gpt-5-mini', messages: hello })
    await expect(streamed('a', other)).rejects.toMatchObject({
      name: expect.stringMatching(/InternalServerException|ModelStreamErrorException/),
    })
  })

  it('may use a key of the gateway as its bearer key; a signature is none', async () => {
    const command = new ConverseCommand({ modelId: claude, messages: hello })
    const whole = await client('keyed', 'key-of-ann').send(command)
    expect(whole.output?.message?.content).toEqual([{ text: 'Hello from F' }])
    expect(fleet.lastCall('f')?.headers.authorization).toBe('Bearer gateway-key')
    await expect(client('keyed').send(command)).rejects.toMatchObject({
      $metadata: { httpStatusCode: 401 },
    })
  })
})

describe('a client of InvokeModel', () => {
  const body = JSON.stringify({
    anthropic_version: 'bedrock-2023-05-31',
    anthropic_beta: ['interleaved-thinking-2025-05-14'],
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Hello' }],
  })

  it.each(ways)('gets messages and chunks of %s', async (name, letter, modelId, text) => {
    const bedrock = client(name)
    const { body: bytes } = await bedrock.send(new InvokeModelCommand({ modelId, body }))
    expect(JSON.parse(Buffer.from(bytes).toString())).toMatchObject({
      type: 'message',
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
    })
    const command = new InvokeModelWithResponseStreamCommand({ modelId, body })
    const chunks = await collect((await bedrock.send(command)).body)
    const events = chunks.map(({ chunk }) => JSON.parse(Buffer.from(chunk?.bytes ?? []).toString()))
    expect(events.map(({ delta }) => delta?.text ?? '').join('')).toBe(text)
    expect(events[0]?.type).toBe('message_start')
    expect(events.at(-1)?.type).toBe('message_stop')
    if (letter === 'c') {
      const { headers, body: sent } = fleet.lastCall('c') ?? {}
      expect(headers?.['anthropic-beta']).toBe('interleaved-thinking-2025-05-14')
      expect(sent).toMatchObject({ model: modelId, stream: true, max_tokens: 100 })
      expect(sent).not.toHaveProperty('anthropic_version')
    }
  })

  it('gets an exception if the vendor fails within the stream', async () => {
    fleet.vendors.c.next.push((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const error = { type: 'rate_limit_error', message: 'slow' }
      response.end(`event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`)
    })
    const command = new InvokeModelWithResponseStreamCommand({ modelId: 'm', body })
    const run = async () => collect((await client('c').send(command)).body)
    await expect(run()).rejects.toMatchObject({ name: 'ThrottlingException' })
  })
})

describe('guards of Bedrock clients', () => {
  const secretText = Buffer.from(`Text ${ssn}`).toString('base64')
  const messages = [
    { role: 'user', content: [{ text: `I am ${ssn}` }] },
    { role: 'assistant', content: [{ toolUse: { toolUseId: 'a', name: 'f', input: {} } }] },
    {
      role: 'user',
      content: [
        { toolResult: { toolUseId: 'a', content: [{ json: { id: ssn, [ssn]: [ssn] } }] } },
        { text: 'Read this.' },
      ],
    },
  ]
  const document = { format: 'txt', name: `Paper ${ssn}`, source: { bytes: secretText } }
  const withDocument = [{ role: 'user', content: [{ text: 'Read.' }, { document }] }]
  const toolConfig = {
    tools: [{ toolSpec: { name: 'f', inputSchema: { json: { type: 'object' } } } }],
  }

  it.each([
    ['a', 'gpt-5-mini'],
    ['c', 'claude-sonnet-4-5'],
    ['d', 'gemini-2.5-flash'],
    ['f', claude],
  ] as const)('read every text for vendor %s', async (letter, model) => {
    const system = [{ text: `You know ${ssn}` }]
    for (const body of [
      { system, messages, toolConfig },
      { system, messages: withDocument },
    ]) {
      for (const verb of ['converse', 'converse-stream']) {
        const url = `${fleet.base(`guarded-${letter}`)}/model/${encodeURIComponent(model)}/${verb}`
        const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
        expect([response.status, await response.text()]).toEqual([200, expect.anything()])
      }
    }
    expect(fleet.vendors[letter].calls).toHaveLength(4)
    for (const { text } of fleet.vendors[letter].calls) {
      expect(text).not.toContain(ssn)
      expect(text).not.toContain(secretText)
    }
  })

  it.each([
    ['a', 'gpt-5-mini', completes('Ask ann@exa', 'mple.com now')],
    ['c', 'claude-sonnet-4-5', says('Ask ann@exa', 'mple.com now')],
    ['d', 'gemini-2.5-flash', generates('Ask ann@exa', 'mple.com now')],
    ['f', claude, converses({ texts: ['Ask ann@exa', 'mple.com now'] })],
  ] as const)('mask responses and streams of vendor %s', async (letter, modelId, answer) => {
    fleet.vendors[letter].answer = answer
    const bedrock = client(`guarded-${letter}`)
    const masked = 'Ask <EMAIL_ADDRESS> now'
    const whole = await bedrock.send(new ConverseCommand({ modelId, messages: hello }))
    expect(whole.output?.message?.content).toEqual([{ text: masked }])
    const command = new ConverseStreamCommand({ modelId, messages: hello })
    const events = await collect((await bedrock.send(command)).stream)
    expect(textOf(events)).toBe(masked)
    expect(events.at(-1)?.metadata?.usage?.inputTokens).toBeGreaterThan(0)
    const body = JSON.stringify({
      anthropic_version: 'bedrock-2023-05-31',
      max_tokens: 100,
      messages: [{ role: 'user', content: `I am ${ssn}` }],
    })
    const invoke = new InvokeModelWithResponseStreamCommand({ modelId, body })
    const chunks = await collect((await bedrock.send(invoke)).body)
    const deltas = chunks.map(({ chunk }) => JSON.parse(Buffer.from(chunk?.bytes ?? []).toString()))
    expect(deltas.map(({ delta }) => delta?.text ?? '').join('')).toBe(masked)
    expect(fleet.lastCall(letter)?.text).not.toContain(ssn)
  })
})
