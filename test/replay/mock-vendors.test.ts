/** The mock vendors of the examples, asked by the SDKs of all vendors, and as the vendors of a gateway. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { root } from '../hosts/files-server.ts'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, manifest, routeByPath, secret } from '../support/manifests.ts'

const content = 'a question'
const messages = [{ role: 'user' as const, content }]
const said = (address: string) => `You said "${content}". Write to ${address} for more.`
const answer = said('support@example.com')

async function startMock() {
  const { startVendor } = (await import(join(root, 'examples', 'ai', 'vendors.mjs'))) as {
    startVendor(port: number): Promise<Server>
  }
  const server = await startVendor(0)
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}`, close: () => void server.close() }
}

/** The texts of a stream, joined. */
async function joined<Part>(
  parts: AsyncIterable<Part>,
  textOf: (part: Part) => string | undefined,
) {
  let text = ''
  for await (const part of parts) text += textOf(part) ?? ''
  return text
}

describe('a mock vendor', () => {
  const mock = useFixture(startMock)
  const openai = () => new OpenAI({ baseURL: `${mock.url}/v1`, apiKey: 'any', maxRetries: 0 })
  const anthropic = () => new Anthropic({ baseURL: mock.url, apiKey: 'any', maxRetries: 0 })

  it('answers chats, responses, embeddings, lists of models and errors of the SDK of OpenAI', async () => {
    const { chat, responses, embeddings, models } = openai()
    const request = { model: 'gpt-4o-mini', messages }
    const whole = await chat.completions.create(request)
    expect(whole.choices[0]?.message.content).toBe(answer)
    const stream = await chat.completions.create({ ...request, stream: true })
    expect(await joined(stream, ({ choices }) => choices[0]?.delta.content ?? '')).toBe(answer)
    const asked = { model: 'gpt-4o-mini', input: content }
    expect((await responses.create(asked)).output_text).toBe(answer)
    const streamed = responses.stream(asked)
    expect((await streamed.finalResponse()).output_text).toBe(answer)
    const vectors = await embeddings.create({ model: 'm', input: ['a', 'b'], dimensions: 4 })
    expect(vectors.data.map(({ embedding }) => embedding.length)).toEqual([4, 4])
    expect(vectors.data[0]?.embedding).not.toEqual(vectors.data[1]?.embedding)
    expect((await models.list()).data.map(({ id }) => id)).toContain('claude-sonnet-5-5')
    await expect(
      chat.completions.create({ ...request, model: 'out-of-capacity' }),
    ).rejects.toMatchObject({ status: 429 })
  })

  it('answers messages, their streams, betas and token counts of the SDK of Anthropic', async () => {
    const client = anthropic()
    const request = { model: 'claude-sonnet-5-5', max_tokens: 100, messages }
    const text = [{ type: 'text', text: answer }]
    expect((await client.messages.create(request)).content).toEqual(text)
    expect((await client.beta.messages.create(request)).content).toEqual(text)
    expect((await client.messages.stream(request).finalMessage()).content).toMatchObject(text)
    const { input_tokens } = await client.messages.countTokens({ model: 'm', messages })
    expect(input_tokens).toBeGreaterThan(5)
  })

  it('answers contents, streams, token counts and embeddings of the SDK of Gemini', async () => {
    const { models } = new GoogleGenAI({ apiKey: 'any', httpOptions: { baseUrl: mock.url } })
    const request = { model: 'gemini-2.5-flash', contents: content }
    expect((await models.generateContent(request)).text).toBe(answer)
    const stream = await models.generateContentStream(request)
    expect(await joined(stream, ({ text }) => text)).toBe(answer)
    expect((await models.countTokens(request)).totalTokens).toBeGreaterThan(5)
    const { embeddings } = await models.embedContent(request)
    expect(embeddings?.[0]?.values).toHaveLength(8)
  })
})

describe('a gateway in front of mock vendors', async () => {
  const port = await freePort()
  const mock = useFixture(startMock)
  const providers = {
    'vendor-a': { vendorA: {} },
    'vendor-c': { vendorC: {} },
    'vendor-d': { vendorD: {} },
    'vendor-f': { vendorF: { region: 'eu-central-1' } },
  }
  useGateway(() => ({
    manifests: {
      'all.yaml': manifest(
        gateway(port),
        secret('key', { Authorization: 'any' }),
        ...Object.entries(providers).flatMap(([name, provider]) => [
          routeByPath(name),
          aiBackend(
            name,
            { provider: { ...provider, host: '127.0.0.1', port: mock.port } },
            {
              auth: { secretRef: { name: 'key' } },
              ai: { promptGuard: { response: [{ regex: { builtins: ['Email'] } }] } },
            },
          ),
        ]),
      ),
    },
  }))

  it.each(Object.keys(providers))('masks what %s streams and what it answers', async (name) => {
    const baseURL = `http://127.0.0.1:${port}/${name}/v1`
    const { chat } = new OpenAI({ baseURL, apiKey: 'any', maxRetries: 0 })
    const request = { model: 'm-1', messages }
    const whole = await chat.completions.create(request)
    expect(whole.choices[0]?.message.content).toBe(said('<EMAIL_ADDRESS>'))
    expect(whole.usage?.total_tokens).toBeGreaterThan(20)
    const stream = await chat.completions.create({ ...request, stream: true })
    const text = await joined(stream, ({ choices }) => choices[0]?.delta.content ?? '')
    expect(text).toBe(said('<EMAIL_ADDRESS>'))
  })

  it('answers Converse and its streams of the SDK of Bedrock, and counts tokens for that of Anthropic', async () => {
    const baseURL = `http://127.0.0.1:${port}/vendor-f`
    const client = new BedrockRuntimeClient({
      region: 'eu-central-1',
      endpoint: baseURL,
      credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
    })
    const asked = [{ role: 'user' as const, content: [{ text: content }] }]
    const request = { modelId: 'amazon.nova-pro-v1:0', messages: asked }
    const { output } = await client.send(new ConverseCommand(request))
    expect(output?.message?.content).toEqual([{ text: said('<EMAIL_ADDRESS>') }])
    const { stream = [] } = await client.send(new ConverseStreamCommand(request))
    const text = await joined(
      stream as AsyncIterable<{ contentBlockDelta?: { delta?: { text?: string } } }>,
      ({ contentBlockDelta }) => contentBlockDelta?.delta?.text,
    )
    expect(text).toBe(said('<EMAIL_ADDRESS>'))
    const { messages: counted } = new Anthropic({ baseURL, apiKey: 'any', maxRetries: 0 })
    const count = await counted.countTokens({ model: 'anthropic.claude-v9', messages })
    expect(count.input_tokens).toBeGreaterThan(5)
    client.destroy()
  })
})
