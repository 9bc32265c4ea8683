/**
 * Conversations of agents with tools: several turns, with thinking, whole and streamed, and with a
 * change of the vendor in between. The simulators refuse the same requests as the vendors.
 */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, reachedBackend, useFleet } from '../support/vendors/fleet.ts'
import type { Answer } from '../support/vendors/vendor.ts'
import { calls } from '../support/vendors/vendor-a.ts'
import { callsC, failsC, thoughtsC } from '../support/vendors/vendor-c.ts'
import { callsD, failsD } from '../support/vendors/vendor-d.ts'
import { converses } from '../support/vendors/vendor-f.ts'

const fleet = useFleet(({ at, region }) => [
  reached('b', { vendorB: { endpoint: 'https://unused.example' }, ...at('b') }),
  reached('c', { vendorC: {}, ...at('c') }),
  reached('d', { vendorD: {}, ...at('d') }, { auth: { key: 'AIzaKey' } }),
  reached('e', { vendorE: { projectId: 'my-project', region: 'us-central1' }, ...at('e') }),
  reached('f', { vendorF: { region }, ...at('f') }),
  reachedBackend('over', {
    groups: [
      [{ name: 'd', vendorD: { model: 'gemini-3-pro-preview' }, ...at('d') }],
      [{ name: 'c', vendorC: { model: 'claude-sonnet-4-5' }, ...at('c') }],
      [{ name: 'b', vendorB: { endpoint: 'https://unused.example' }, ...at('b') }],
    ].map((providers) => ({ providers })),
  }),
])
beforeEach(() => fleet.forget())

const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: fleet.base(name), apiKey: 'client-key', maxRetries: 0 })

const input = { city: 'Köln' }
const call = { id: 'tool_1', name: 'weather', input }
const thoughts = ['Hm, ', 'so.']

interface Way {
  readonly vendor: 'b' | 'c' | 'd' | 'e' | 'f'
  readonly model: string
  readonly calls: Answer
}

const ways: readonly Way[] = [
  { vendor: 'b', model: 'gpt-5.1', calls: calls({ ...call, id: 'call_of-b' }) },
  { vendor: 'c', model: 'claude-sonnet-4-5', calls: callsC({ ...call, id: 'toolu_of_c' }) },
  { vendor: 'd', model: 'gemini-3-pro-preview', calls: callsD(call) },
  { vendor: 'e', model: 'claude-sonnet-4-5', calls: callsC(call) },
  { vendor: 'e', model: 'google/gemini-2.5-pro', calls: callsD(call) },
  {
    vendor: 'e',
    model: 'meta/llama-3.3-70b',
    calls: calls({
      ...call,
      id: 'functions.weather:0/of a form that no vendor but one knows, so long',
    }),
  },
  {
    vendor: 'f',
    model: 'anthropic.claude-sonnet-4-5-v1:0',
    calls: converses({ thoughts, redacted: 'cmVkYWN0ZWQ=', call }),
  },
  { vendor: 'f', model: 'amazon.nova-pro-v1:0', calls: converses({ call }) },
]

const pairs = ways.flatMap((from) => ways.map((to) => ({ from, to })))
const nameOf = ({ vendor, model }: Way) => `${vendor} (${model})`
const moves = pairs.map(({ from, to }) => ({ title: `${nameOf(from)} to ${nameOf(to)}`, from, to }))

const callIdOf = (output: readonly OpenAI.Responses.ResponseOutputItem[]): string =>
  output.flatMap((item) => (item.type === 'function_call' ? [item.call_id] : []))[0] ?? ''

const question = 'Weather in Köln?'
/** A tool without parameters. */
const toolNames = ['weather', 'now'] as const
const functions = toolNames.map((name) => ({ type: 'function' as const, function: { name } }))
const effort = { reasoning_effort: 'high' as const, max_completion_tokens: 9000 }

/** An assistant message as frameworks send it that drop extension fields. */
function bare(message: OpenAI.ChatCompletionMessage): OpenAI.ChatCompletionMessageParam {
  const { role, content, tool_calls } = message
  return { role, content, ...(tool_calls !== undefined && { tool_calls }) }
}

async function completionsTurn(
  { vendor, model }: Way,
  messages: OpenAI.ChatCompletionMessageParam[],
  isStream: boolean,
): Promise<OpenAI.ChatCompletionMessage> {
  const client = openai(vendor).chat.completions
  const request = { model, messages, tools: functions, ...effort }
  const { choices } = isStream
    ? await client.stream(request).finalChatCompletion()
    : await client.create(request)
  const message = choices[0]?.message
  if (message === undefined) throw new Error('no choice')
  return message
}

describe.each(moves)('an agent that moves from $title', ({ from, to }) => {
  it.each([true, false])(
    'continues chat completions with a tool call, streamed: %s',
    async (isStream) => {
      const user = { role: 'user' as const, content: question }
      fleet.vendors[from.vendor].next.push(from.calls)
      const asked = await completionsTurn(from, [user], isStream)
      const id = asked.tool_calls?.[0]?.id ?? ''
      const result = { role: 'tool' as const, tool_call_id: id, content: 'rain' }
      for (const message of [asked, bare(asked)]) {
        const answer = await completionsTurn(to, [user, message, result], isStream)
        expect(answer.content).toMatch(/^Hello from/)
        // Agents that want no more calls leave the tools out.
        const last = { model: to.model, messages: [user, message, result] }
        await openai(to.vendor).chat.completions.create(last)
        const sent = fleet.lastCall(to.vendor)?.text ?? ''
        expect(sent).toContain('rain')
        expect(sent).toContain('Köln')
      }
    },
  )

  it('continues messages with a tool call', async () => {
    const thinking = { type: 'enabled' as const, budget_tokens: 2000 }
    const tools = [{ name: 'weather', input_schema: { type: 'object' as const } }]
    const request = { max_tokens: 4000, tools, thinking }
    const user = { role: 'user' as const, content: question }
    fleet.vendors[from.vendor].next.push(from.calls)
    const asked = await anthropic(from.vendor).messages.create({
      ...request,
      model: from.model,
      messages: [user],
    })
    const id = asked.content.find((block) => block.type === 'tool_use')?.id ?? ''
    const result = { type: 'tool_result' as const, tool_use_id: id, content: 'rain' }
    const answer = await anthropic(to.vendor).messages.create({
      ...request,
      model: to.model,
      messages: [
        user,
        { role: 'assistant', content: asked.content },
        { role: 'user', content: [result] },
      ],
    })
    expect(answer.content).toMatchObject([
      { type: 'text', text: expect.stringMatching(/^Hello from/) },
    ])
    expect(fleet.lastCall(to.vendor)?.text).toContain('rain')
  })

  // The simulator of vendorB calls tools in chat completions only.
  it.skipIf(from.vendor === 'b')('continues responses with a tool call', async () => {
    const tools = [{ type: 'function' as const, name: 'weather', parameters: null, strict: false }]
    const request = { tools, reasoning: { effort: 'high' as const }, max_output_tokens: 9000 }
    const user = { role: 'user' as const, content: question }
    fleet.vendors[from.vendor].next.push(from.calls, from.calls)
    const first = { ...request, model: from.model, input: [user] }
    const whole = await openai(from.vendor).responses.create(first)
    const streamed = await openai(from.vendor).responses.stream(first).finalResponse()
    for (const { output } of [whole, streamed]) {
      const id = callIdOf(output)
      const result = { type: 'function_call_output' as const, call_id: id, output: 'rain' }
      const answer = await openai(to.vendor).responses.create({
        ...request,
        model: to.model,
        input: [user, ...(output as OpenAI.Responses.ResponseInputItem[]), result],
      })
      expect(answer.output_text).toMatch(/^Hello from/)
      expect(fleet.lastCall(to.vendor)?.text).toContain('rain')
    }
  })
})

const thinkers = ways.filter(({ model }) => model.includes('claude'))
const titled = thinkers.map((way) => ({ title: nameOf(way), ...way }))

/** The thinking of the last request, whatever the format. */
function thinkingOf(vendor: Way['vendor']): unknown {
  const { thinking, additionalModelRequestFields: more } = fleet.lastCall(vendor)?.body ?? {}
  return thinking ?? (more as { thinking?: unknown } | undefined)?.thinking
}

describe.each(titled)('thinking of $title', (way) => {
  const { vendor, model } = way
  const user = { role: 'user' as const, content: question }

  it.each([true, false])(
    'continues in chat completions that send it back, streamed: %s',
    async (isStream) => {
      fleet.vendors[vendor].next.push(way.calls)
      const asked = await completionsTurn(way, [user], isStream)
      expect(thinkingOf(vendor)).toEqual({ type: 'enabled', budget_tokens: 4096 })
      const result = {
        role: 'tool' as const,
        tool_call_id: asked.tool_calls?.[0]?.id ?? '',
        content: 'rain',
      }
      await completionsTurn(way, [user, asked, result], isStream)
      expect(thinkingOf(vendor)).toEqual({ type: 'enabled', budget_tokens: 4096 })
      const sent = fleet.lastCall(vendor)?.text
      expect(sent).toContain('"Hm, so."')
      expect(sent).toContain('"cmVkYWN0ZWQ="')
      await completionsTurn(way, [user, bare(asked), result], isStream)
      expect(thinkingOf(vendor)).toBe(undefined)
      const next = { role: 'user' as const, content: 'And tomorrow?' }
      const said = { role: 'assistant' as const, content: 'Rain.' }
      await completionsTurn(way, [user, bare(asked), result, said, next], isStream)
      expect(thinkingOf(vendor)).toEqual({ type: 'enabled', budget_tokens: 4096 })
    },
  )

  it('continues in responses that send it back, unless it was changed', async () => {
    const request = { model, reasoning: { effort: 'high' as const }, max_output_tokens: 9000 }
    fleet.vendors[vendor].next.push(way.calls)
    const { output } = await openai(vendor).responses.create({ ...request, input: question })
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'reasoning', 'function_call'])
    const id = callIdOf(output)
    const result = { type: 'function_call_output' as const, call_id: id, output: 'rain' }
    const items = output as OpenAI.Responses.ResponseInputItem[]
    const history = [user, ...items, result]
    await openai(vendor).responses.create({ ...request, input: history })
    expect(thinkingOf(vendor)).toEqual({ type: 'enabled', budget_tokens: 4096 })
    expect(fleet.lastCall(vendor)?.text).toContain('"Hm, so."')
    const changed = items.flatMap((item): OpenAI.Responses.ResponseInputItem[] => {
      if (item.type !== 'reasoning') return [item]
      const summary = [{ type: 'summary_text' as const, text: 'Something else.' }]
      return item.summary.length === 0 ? [] : [{ ...item, summary }]
    })
    await openai(vendor).responses.create({ ...request, input: [user, ...changed, result] })
    expect(thinkingOf(vendor)).toBe(undefined)
  })

  it('is omitted if a tool call is forced', async () => {
    const named = { type: 'function' as const, function: { name: 'weather' } }
    const request = { model, messages: [user], tools: functions, ...effort }
    for (const tool_choice of ['required' as const, named]) {
      await openai(vendor).chat.completions.create({ ...request, tool_choice, temperature: 0.5 })
      expect(thinkingOf(vendor)).toBe(undefined)
      expect(fleet.lastCall(vendor)?.text).toContain('0.5')
    }
    await openai(vendor).chat.completions.create({ ...request, tool_choice: 'auto' })
    expect(thinkingOf(vendor)).toEqual({ type: 'enabled', budget_tokens: 4096 })
  })
})

it('thinking and redacted thinking pass between messages and vendorF unchanged', async () => {
  const thinking = { type: 'enabled' as const, budget_tokens: 2000 }
  const model = 'anthropic.claude-sonnet-4-5-v1:0'
  const user = { role: 'user' as const, content: question }
  const request = { model, max_tokens: 4000, thinking, messages: [user] }
  const answer = converses({ thoughts, redacted: 'cmVkYWN0ZWQ=', call })
  fleet.vendors.f.next.push(answer, answer)
  const whole = await anthropic('f').messages.create(request)
  const streamed = await anthropic('f').messages.stream(request).finalMessage()
  for (const { content } of [whole, streamed]) {
    expect(content).toMatchObject([
      ...thoughtsC,
      { type: 'tool_use', id: 'tool_1', name: 'weather' },
    ])
    const result = { type: 'tool_result' as const, tool_use_id: 'tool_1', content: 'rain' }
    await anthropic('f').messages.create({
      ...request,
      messages: [user, { role: 'assistant', content }, { role: 'user', content: [result] }],
    })
    const [, sent] = (fleet.lastCall('f')?.body.messages ?? []) as { content: object[] }[]
    expect(sent?.content.slice(0, 2)).toEqual([
      { reasoningContent: { reasoningText: { text: 'Hm, so.', signature: 'c2ln' } } },
      { reasoningContent: { redactedContent: 'cmVkYWN0ZWQ=' } },
    ])
    expect(thinkingOf('f')).toEqual(thinking)
  }
})

it('vendorD gets its own thought signatures, and a placeholder for tool calls of other vendors', async () => {
  const way = { vendor: 'd', model: 'gemini-3-pro-preview', calls: callsD(call) } as const
  const user = { role: 'user' as const, content: question }
  fleet.vendors.d.next.push(way.calls)
  const asked = await completionsTurn(way, [user], false)
  const id = asked.tool_calls?.[0]?.id ?? ''
  const other = {
    id: 'call_2',
    type: 'function' as const,
    function: { name: 'now', arguments: '' },
  }
  const history = [
    user,
    asked,
    { role: 'tool' as const, tool_call_id: id, content: 'rain' },
    { role: 'assistant' as const, tool_calls: [other, { ...other, id: 'call_3' }] },
    { role: 'tool' as const, tool_call_id: 'call_2', content: 'noon' },
    { role: 'tool' as const, tool_call_id: 'call_3', content: 'noon' },
  ]
  const signatures = async (model: string) => {
    await completionsTurn({ ...way, model }, history, false)
    const { contents } = (fleet.lastCall('d')?.body ?? { contents: [] }) as {
      contents: { parts: { functionCall?: object; thoughtSignature?: string }[] }[]
    }
    const called = contents.flatMap(({ parts }) => parts).filter(({ functionCall }) => functionCall)
    return called.map(({ thoughtSignature }) => thoughtSignature)
  }
  const standIn = 'skip_thought_signature_validator'
  expect(await signatures('gemini-3-pro-preview')).toEqual(['c2ln', standIn, undefined])
  expect(await signatures('gemini-2.5-pro')).toEqual(['c2ln', undefined, undefined])
})

it('an agent continues with the next vendor if the vendor of its tool call fails', async () => {
  const client = openai('over').chat.completions
  const model = 'gpt-5.1'
  const user = { role: 'user' as const, content: question }
  const request = { model, tools: functions, ...effort }
  fleet.vendors.d.next.push(callsD(call), failsD(503, 'busy'), failsD(503, 'busy'))
  const { choices } = await client.create({ ...request, messages: [user] })
  const [asked] = choices.map(({ message }) => message)
  const id = asked?.tool_calls?.[0]?.id ?? ''
  expect(id).toContain('c2ln')
  const result = { role: 'tool' as const, tool_call_id: id, content: 'rain' }
  const history = [user, ...(asked === undefined ? [] : [asked]), result]
  fleet.vendors.c.next.push(callsC({ ...call, id: 'toolu_2' }))
  const second = await client.create({ ...request, messages: history })
  expect(fleet.lastCall('c')?.text).toContain('rain')
  expect(fleet.lastCall('c')?.text).not.toContain('c2ln')
  const [askedAgain] = second.choices.map(({ message }) => message)
  expect(askedAgain?.tool_calls).toMatchObject([{ id: 'toolu_2' }])
  const more = { role: 'tool' as const, tool_call_id: 'toolu_2', content: 'snow' }
  fleet.vendors.c.next.push(failsC(529, 'overloaded_error', 'busy'))
  const messages = [...history, ...(askedAgain === undefined ? [] : [askedAgain]), more]
  const third = await client.create({ ...request, messages })
  expect(third.choices[0]?.message.content).toBe('Hello from B')
  expect(fleet.lastCall('b')?.text).toContain('snow')
  expect(fleet.lastCall('b')?.text).not.toContain('thinking_blocks')
})
