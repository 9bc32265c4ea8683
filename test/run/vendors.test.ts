/** Every vendor in its own wire format, asked by official SDKs in every client format. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import type { Answer } from '../support/vendors/vendor.ts'
import { calls } from '../support/vendors/vendor-a.ts'
import { callsC } from '../support/vendors/vendor-c.ts'
import { callsD } from '../support/vendors/vendor-d.ts'
import { converses } from '../support/vendors/vendor-f.ts'

const signed = { aws: { secretRef: { name: 'aws' } } }

const fleet = useFleet(({ at, region }) => {
  const endpoint = 'https://unused.example'
  const dated = { endpoint, deploymentName: 'prod', apiVersion: '2024-10-21' }
  return [
    reached('b', { vendorB: { endpoint }, ...at('b') }),
    reached('b-dated', { vendorB: dated, ...at('b') }),
    reached('c', { vendorC: {}, ...at('c') }),
    reached('d', { vendorD: {}, ...at('d') }, { auth: { key: 'AIzaKey' } }),
    reached('e', { vendorE: { projectId: 'my-project', region: 'us-central1' }, ...at('e') }),
    reached('f', { vendorF: { region }, ...at('f') }, { auth: signed }),
    reached('f-key', { vendorF: { region }, ...at('f') }),
  ]
})
beforeEach(() => fleet.forget())

const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: fleet.base(name), apiKey: 'client-key', maxRetries: 0 })

const content = 'Hello'
const messages = [{ role: 'user' as const, content }]

/** A model for each vendor, and for each model family if the format depends on it. */
const ways = [
  { name: 'b', vendor: 'b', model: 'gpt-4o', text: 'Hello from B' },
  { name: 'b-dated', vendor: 'b', model: 'gpt-4o', text: 'Hello from B' },
  { name: 'c', vendor: 'c', model: 'claude-sonnet-4-0', text: 'Hello from C' },
  { name: 'd', vendor: 'd', model: 'gemini-2.5-flash', text: 'Hello from D' },
  { name: 'e', vendor: 'e', model: 'claude-sonnet-4-20250514', text: 'Hello from E' },
  { name: 'e', vendor: 'e', model: 'google/gemini-2.5-pro', text: 'Hello from E' },
  { name: 'e', vendor: 'e', model: 'meta/llama-3.3-70b', text: 'Hello from E' },
  { name: 'f', vendor: 'f', model: 'anthropic.claude-sonnet-4-v1:0', text: 'Hello from F' },
  { name: 'f-key', vendor: 'f', model: 'amazon.nova-pro-v1:0', text: 'Hello from F' },
] as const

const input = { city: 'Köln' }
const call = { id: 'call_1', name: 'weather', input }

/** How each way's vendor says that it wants a tool called. */
function toolAnswer(way: (typeof ways)[number]): Answer {
  if (way.vendor === 'c') return callsC(call)
  if (way.vendor === 'd') return callsD(call)
  if (way.vendor === 'f') return converses({ call })
  if (way.vendor === 'b') return calls(call)
  if (way.model.startsWith('claude')) return callsC(call)
  return way.model.startsWith('google') ? callsD(call) : calls(call)
}

const parameters = {
  type: 'object' as const,
  properties: { city: { type: 'string', minLength: 1 } },
  required: ['city'],
  additionalProperties: false,
}
const functionTool = { name: 'weather', description: 'Weather of a city', parameters }

describe.each(ways)('$name with $model', (way) => {
  const { name, vendor, model, text } = way

  it('answers chat completions', async () => {
    const client = openai(name).chat.completions
    const whole = await client.create({ model, messages })
    expect(whole.choices[0]?.message.content).toBe(text)
    expect(whole.usage?.completion_tokens).toBeGreaterThan(0)
    const options = { include_usage: true }
    const streamed = await client
      .stream({ model, messages, stream_options: options })
      .finalChatCompletion()
    expect(streamed.choices[0]).toMatchObject({ message: { content: text }, finish_reason: 'stop' })
    expect(streamed.usage).toEqual(whole.usage)
  })

  it('answers messages', async () => {
    const request = { model, max_tokens: 100, messages, system: 'Be brief.' }
    const whole = await anthropic(name).messages.create(request)
    expect(whole.content).toEqual([{ type: 'text', text }])
    expect(whole).toMatchObject({ type: 'message', role: 'assistant', stop_reason: 'end_turn' })
    const streamed = await anthropic(name).messages.stream(request).finalMessage()
    expect(streamed.content).toEqual([{ type: 'text', text }])
    expect(streamed.stop_reason).toBe('end_turn')
    expect(streamed.usage).toMatchObject({ output_tokens: whole.usage.output_tokens })
  })

  it('answers responses', async () => {
    const request = { model, input: content, instructions: 'Be brief.' }
    const whole = await openai(name).responses.create(request)
    expect(whole.output_text).toBe(text)
    expect(whole.status).toBe('completed')
    const streamed = await openai(name).responses.stream(request).finalResponse()
    expect(streamed.output_text).toBe(text)
    expect(streamed.usage?.output_tokens).toBe(whole.usage?.output_tokens)
  })

  it('calls tools, and gets their results', async () => {
    const tools = [{ type: 'function' as const, function: functionTool }]
    const { next } = fleet.vendors[vendor]
    next.push(toolAnswer(way), toolAnswer(way))
    const client = openai(name).chat.completions
    const whole = await client.create({ model, messages, tools })
    expect(whole.choices[0]?.finish_reason).toBe('tool_calls')
    const [asked] = whole.choices[0]?.message.tool_calls ?? []
    expect(asked).toMatchObject({ function: { name: 'weather' } })
    const { arguments: json = '' } = asked?.type === 'function' ? asked.function : {}
    expect(JSON.parse(json)).toEqual(input)
    const streamed = await client.stream({ model, messages, tools }).finalChatCompletion()
    const [again] = streamed.choices[0]?.message.tool_calls ?? []
    const told = again?.type === 'function' ? again.function : undefined
    expect(JSON.parse(told?.arguments ?? '')).toEqual(input)
    if (whole.choices[0] === undefined || asked === undefined) throw new Error('no call')
    const result = { role: 'tool' as const, tool_call_id: asked.id, content: 'rain' }
    const history = [...messages, whole.choices[0].message, result]
    const answer = await client.create({ model, messages: history, tools })
    expect(answer.choices[0]?.message.content).toBe(text)
    expect(fleet.lastCall(vendor)?.text).toContain('rain')
  })

  it('calls tools of messages and responses, whole and in a stream', async () => {
    const { next } = fleet.vendors[vendor]
    for (const _ of [1, 2, 3, 4]) next.push(toolAnswer(way))
    const tools = [{ name: 'weather', input_schema: parameters }]
    const request = { model, max_tokens: 100, messages, tools }
    const wanted = { type: 'tool_use', name: 'weather', input }
    const whole = await anthropic(name).messages.create(request)
    expect(whole).toMatchObject({ stop_reason: 'tool_use', content: [wanted] })
    const streamed = await anthropic(name).messages.stream(request).finalMessage()
    expect(streamed).toMatchObject({ stop_reason: 'tool_use', content: [wanted] })
    if (way.vendor === 'b') return
    const functions = [{ type: 'function' as const, strict: true, ...functionTool }]
    const made = { model, input: content, tools: functions }
    const called = { type: 'function_call', name: 'weather', arguments: JSON.stringify(input) }
    const response = await openai(name).responses.create(made)
    expect(response.output).toContainEqual(expect.objectContaining(called))
    const stream = await openai(name).responses.stream(made).finalResponse()
    expect(stream.output).toContainEqual(expect.objectContaining(called))
  })
})
