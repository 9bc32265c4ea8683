/** Tokens of requests, counted by the vendor if it can, and otherwise with tools and pictures by the gateway. */
import Anthropic from '@anthropic-ai/sdk'
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, routes, useFleet } from '../support/vendors/fleet.ts'

const project = { projectId: 'my-project', region: 'us-central1' }
const fleet = useFleet(({ at, region }) => {
  const plain = { ai: { routes }, auth: { key: 'gateway-key' } }
  const formats = [{ type: 'Completions' }]
  return [
    reached('a', { vendorA: {}, ...at('a') }, plain),
    reached('c', { vendorC: {}, ...at('c') }, plain),
    reached('d', { vendorD: {}, ...at('d') }, plain),
    reached('e', { vendorE: project, ...at('e') }, plain),
    reached(
      'f',
      { vendorF: { region }, ...at('f') },
      { ai: { routes }, auth: { aws: { secretRef: { name: 'aws' } } } },
    ),
    reached('local', { custom: { formats }, ...at('a') }, plain),
  ]
})
beforeEach(() => fleet.forget())

type Request = Anthropic.MessageCountTokensParams
const count = async (name: string, request: Request): Promise<number> => {
  const client = new Anthropic({ baseURL: fleet.base(name), apiKey: 'k', maxRetries: 0 })
  return (await client.messages.countTokens(request)).input_tokens
}

/** A PNG that has only its header. */
const png = (width: number, height: number): string => {
  const bytes = Buffer.alloc(33)
  bytes.write('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1')
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes.toString('base64')
}
const picture = (width: number, height: number): Anthropic.ImageBlockParam => ({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: png(width, height) },
})
const text = { type: 'text' as const, text: 'Hello' }
const tools: Anthropic.Tool[] = [
  {
    name: 'weather',
    description: 'Returns the weather of a city.',
    input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
]
const asking = (model: string, ...content: Anthropic.ContentBlockParam[]): Request => ({
  model,
  messages: [{ role: 'user', content: [text, ...content] }],
})

describe('[RouteType=VendorCTokenCount] tokens of a request', () => {
  it('are counted by vendors in their own format, with tools and pictures', async () => {
    const request = { ...asking('gpt-4o', picture(10, 10)), tools, system: 'Be kind.' }
    expect(await count('a', request)).toBe(17)
    expect(fleet.lastCall('a')?.body).toMatchObject({
      model: 'gpt-4o',
      instructions: 'Be kind.',
      tools: [{ type: 'function', name: 'weather' }],
    })
    expect(JSON.stringify(fleet.lastCall('a')?.body.input)).toContain('input_image')
    const gemini = { ...request, model: 'gemini-2.5-flash' }
    expect(await count('d', gemini)).toBe(13)
    expect(fleet.lastCall('d')?.path).toBe('/v1beta/models/gemini-2.5-flash:countTokens')
    expect(fleet.lastCall('d')?.body.generateContentRequest).toMatchObject({
      model: 'models/gemini-2.5-flash',
      systemInstruction: { parts: [{ text: 'Be kind.' }] },
      tools: [{ functionDeclarations: [{ name: 'weather' }] }],
    })
    expect(await count('e', gemini)).toBe(13)
    expect(fleet.lastCall('e')?.path).toMatch(/\/gemini-2.5-flash:countTokens$/)
    expect(fleet.lastCall('e')?.body).toMatchObject({ contents: expect.any(Array) })
    expect(await count('c', { ...request, model: 'claude-sonnet-4-5' })).toBe(42)
  })

  it('are counted by the gateway for other servers, each tool and picture included', async () => {
    const base = await count('local', asking('gpt-4o'))
    expect(base).toBe(8)
    const withTool = await count('local', { ...asking('gpt-4o'), tools })
    // The name, the description and the schema have about 30 tokens.
    expect(withTool).toBeGreaterThan(base + 25)
    expect(withTool).toBeLessThan(base + 60)
    const pictures = [
      // One tile of 512 pixels.
      ['gpt-4o', 512, 512, 85 + 170],
      // Scaled so that the shorter side has 768 pixels: 2 x 3 tiles.
      ['gpt-4o', 2048, 1024, 85 + 170 * 6],
      ['claude-sonnet-4-5', 750, 100, 100],
      ['claude-sonnet-4-5', 8000, 8000, 1600],
      ['gemini-2.5-flash', 300, 300, 258],
      ['gemini-2.5-flash', 1536, 768, 516],
    ] as const
    for (const [model, width, height, tokens] of pictures) {
      const plain = await count('local', asking(model))
      const found = await count('local', asking(model, picture(width, height)))
      expect(found - plain, `${model} ${width}x${height}`).toBe(tokens)
    }
    expect(fleet.lastCall('a')).toBe(undefined)
  })

  it('are counted by the gateway if the server has no counts', async () => {
    fleet.vendors.a.next.push((_, response) => {
      response.writeHead(404).end('404 page not found')
    })
    expect(await count('a', asking('gpt-4o'))).toBe(8)
  })
})
