import { describe, expect, it } from 'vitest'
import { shippedCatalog } from '../catalog/shipped.ts'
import { clientFormats, providerFormats } from '../formats/index.ts'
import { translate } from '../request/translation.ts'

const text = { role: 'user', content: 'q' }
const chats = {
  Completions: (word: string) => ({ messages: [text], service_tier: word }),
  Responses: (word: string) => ({ input: 'q', service_tier: word, text: { verbosity: 'low' } }),
  Messages: (word: string) => ({ messages: [text], max_tokens: 9, service_tier: word }),
  Converse: (word: string) => ({
    messages: [{ role: 'user', content: [{ text: 'q' }] }],
    serviceTier: { type: word },
  }),
  GenerateContent: (word: string) => ({
    contents: [{ parts: [{ text: 'q' }] }],
    serviceTier: word,
  }),
}

function sent(
  client: keyof typeof chats,
  word: string,
  [provider, id, model]: readonly [keyof typeof providerFormats, string, string],
) {
  const chat = clientFormats[client].readRequest({ ...chats[client](word), model })
  const facts = shippedCatalog.find(model, id)
  return translate(chat, providerFormats[provider], { facts, newId: () => 'id' }).body
}

const gpt = ['completions', 'openai', 'gpt-5'] as const
const responses = ['responses', 'openai', 'gpt-5'] as const
const gemini = ['generate-content', 'gcp.gemini', 'gemini-2.5-flash'] as const
const nova = ['converse', 'aws.bedrock', 'amazon.nova-2-lite-v1:0'] as const
const unknown = ['completions', 'custom', 'some-model'] as const

describe('the service that a client asks for', () => {
  it('has the words of each vendor', () => {
    expect(sent('Messages', 'standard_only', gpt).service_tier).toBe('default')
    expect(sent('Converse', 'priority', gpt).service_tier).toBe('priority')
    expect(sent('GenerateContent', 'flex', responses).service_tier).toBe('flex')
    expect(sent('Completions', 'flex', gemini).serviceTier).toBe('flex')
    expect(sent('Responses', 'default', gemini).serviceTier).toBe('standard')
    expect(sent('Responses', 'priority', nova).serviceTier).toEqual({ type: 'priority' })
  })

  it('is left out if the model has no prices for it, or no choice', () => {
    expect(sent('Completions', 'flex', nova)).not.toHaveProperty('serviceTier')
    expect(sent('Responses', 'priority', unknown)).not.toHaveProperty('service_tier')
    expect(sent('Messages', 'standard_only', unknown)).not.toHaveProperty('service_tier')
    expect(sent('Messages', 'auto', gpt)).not.toHaveProperty('service_tier')
  })

  it('keeps the verbosity of a chat whose model is served in Responses only', () => {
    const chat = clientFormats.Completions.readRequest({ messages: [text], verbosity: 'low' })
    const facts = shippedCatalog.find('gpt-5', 'openai')
    const options = { facts, newId: () => 'id' }
    expect(translate(chat, providerFormats.responses, options).body.text).toEqual({
      verbosity: 'low',
    })
  })
})
