/**
 * Rules of models: requests of every client format that a model would refuse as they are, sent to simulators that
 * refuse what the vendors refuse of this model.
 */
import { describe, expect, it } from 'vitest'
import { type Case, expectMembers, title, useModels, user } from './model-rules-rig.ts'

const { fleet, sent } = useModels()

const tool = { name: 'weather', description: 'Says the weather' }
const schema = { type: 'object', properties: { city: { type: 'string' } } }
const chatTools = [{ type: 'function', function: { ...tool, parameters: schema } }]
const messagesTools = [{ ...tool, input_schema: schema }]

const adaptive = { type: 'adaptive', display: 'summarized' }
const enabled = (budget_tokens: number) => ({ thinking: { type: 'enabled', budget_tokens } })

describe('thinking', () => {
  it.each<Case>([
    [
      'c',
      'chat',
      'claude-opus-4-7',
      { reasoning_effort: 'high' },
      { thinking: adaptive, 'output_config.effort': 'high' },
    ],
    [
      'c',
      'chat',
      'claude-opus-5',
      { reasoning_effort: 'xhigh' },
      { thinking: adaptive, 'output_config.effort': 'xhigh' },
    ],
    [
      'c',
      'chat',
      'claude-opus-9',
      { reasoning_effort: 'minimal' },
      { thinking: adaptive, 'output_config.effort': 'low' },
    ],
    [
      'c',
      'chat',
      'claude-sonnet-4-6',
      { reasoning_effort: 'xhigh' },
      { thinking: adaptive, 'output_config.effort': 'high' },
    ],
    [
      'c',
      'chat',
      'claude-sonnet-4-5',
      { reasoning_effort: 'high' },
      { thinking: { type: 'enabled', budget_tokens: 4096 }, output_config: undefined },
    ],
    [
      'c',
      'chat',
      'claude-sonnet-5',
      { reasoning_effort: 'none' },
      { thinking: { type: 'disabled' } },
    ],
    ['c', 'chat', 'claude-fable-5', { reasoning_effort: 'none' }, { thinking: undefined }],
    [
      'c',
      'chat',
      'claude-3-5-haiku',
      { reasoning_effort: 'high' },
      { thinking: undefined, output_config: undefined },
    ],
    [
      'c',
      'responses',
      'claude-opus-4-8',
      { reasoning: { effort: 'medium' } },
      { thinking: { type: 'adaptive', display: 'omitted' }, 'output_config.effort': 'medium' },
    ],
    [
      'c',
      'responses',
      'claude-opus-4-8',
      { reasoning: { effort: 'medium', summary: 'auto' } },
      { thinking: adaptive },
    ],
    [
      'c',
      'chat',
      'claude-sonnet-5',
      { tools: chatTools, tool_choice: 'required' },
      { thinking: { type: 'disabled' } },
    ],
    [
      'e',
      'chat',
      'claude-opus-4-7',
      { reasoning_effort: 'high' },
      { thinking: adaptive, 'output_config.effort': 'high' },
    ],
    [
      'f',
      'chat',
      'us.anthropic.claude-opus-4-7-v1:0',
      { reasoning_effort: 'high' },
      {
        'additionalModelRequestFields.thinking': adaptive,
        'additionalModelRequestFields.output_config.effort': 'high',
      },
    ],
    [
      'f',
      'messages',
      'us.anthropic.claude-opus-4-7',
      enabled(31_999),
      {
        'additionalModelRequestFields.thinking': { type: 'adaptive' },
        'additionalModelRequestFields.output_config.effort': 'high',
      },
    ],
    [
      'f',
      'messages',
      'anthropic.claude-sonnet-4-5-20250929-v1:0',
      enabled(2_000),
      { 'additionalModelRequestFields.thinking': { type: 'enabled', budget_tokens: 2_000 } },
    ],
    [
      'f',
      'messages',
      'anthropic.claude-opus-4-8',
      { output_config: { effort: 'low' } },
      {
        'additionalModelRequestFields.thinking': undefined,
        'additionalModelRequestFields.output_config.effort': 'low',
      },
    ],
    [
      'f',
      'messages',
      'anthropic.claude-opus-4-8',
      { thinking: { type: 'adaptive', display: 'summarized' } },
      { 'additionalModelRequestFields.thinking': adaptive },
    ],
    [
      'f',
      'chat',
      'amazon.nova-2-lite-v1:0',
      { reasoning_effort: 'high', max_completion_tokens: 900, temperature: 0.5 },
      {
        'additionalModelRequestFields.reasoningConfig': {
          type: 'enabled',
          maxReasoningEffort: 'high',
        },
        inferenceConfig: undefined,
      },
    ],
    [
      'f',
      'chat',
      'openai.gpt-oss-120b-1:0',
      { reasoning_effort: 'xhigh' },
      { additionalModelRequestFields: { reasoning_effort: 'high' } },
    ],
    [
      'd',
      'chat',
      'gemini-2.5-pro',
      { reasoning_effort: 'none' },
      { 'generationConfig.thinkingConfig.thinkingBudget': 128 },
    ],
    [
      'd',
      'chat',
      'gemini-2.5-flash',
      { reasoning_effort: 'none' },
      { 'generationConfig.thinkingConfig.thinkingBudget': 0 },
    ],
    [
      'd',
      'chat',
      'gemini-3-pro-preview',
      { reasoning_effort: 'minimal' },
      { 'generationConfig.thinkingConfig.thinkingLevel': 'low' },
    ],
    [
      'd',
      'chat',
      'gemini-3-pro-preview',
      { reasoning_effort: 'medium' },
      { 'generationConfig.thinkingConfig.thinkingLevel': 'low' },
    ],
    [
      'd',
      'chat',
      'gemini-3-flash-preview',
      { reasoning_effort: 'minimal' },
      { 'generationConfig.thinkingConfig.thinkingLevel': 'minimal' },
    ],
    [
      'd',
      'messages',
      'gemini-2.5-flash',
      enabled(60_000),
      { 'generationConfig.thinkingConfig.thinkingBudget': 24_576 },
    ],
    [
      'd',
      'messages',
      'gemini-2.5-pro',
      enabled(60_000),
      { 'generationConfig.thinkingConfig.thinkingBudget': 32_768 },
    ],
    [
      'd',
      'messages',
      'gemini-3.8-flash',
      enabled(31_999),
      { 'generationConfig.thinkingConfig.thinkingLevel': 'high' },
    ],
    ['a', 'messages', 'gpt-5.1', enabled(31_999), { reasoning_effort: 'high' }],
    ['a', 'messages', 'gpt-5', { thinking: { type: 'disabled' } }, { reasoning_effort: 'minimal' }],
    [
      'a',
      'messages',
      'gpt-5.6-sol',
      { output_config: { effort: 'low' } },
      { reasoning_effort: 'low' },
    ],
    ['a', 'messages', 'gpt-4o', enabled(31_999), { reasoning_effort: undefined }],
    [
      'a',
      'messages',
      'gpt-5.5',
      { thinking: { type: 'adaptive' }, tools: messagesTools },
      { reasoning: { effort: 'high', summary: 'auto' }, reasoning_effort: undefined },
    ],
  ])(title, async (vendor, format, model, fields, expected) => {
    expectMembers(await sent(vendor, format, model, fields), expected)
  })

  it('is shown or hidden as Converse and Messages ask for it', async () => {
    const conversed = (display: string) => ({
      messages: [{ role: 'user', content: [{ text: 'Hello' }] }],
      additionalModelRequestFields: { thinking: { type: 'adaptive', display } },
    })
    const post = async (path: string, body: object) => {
      const response = await fetch(path, { method: 'POST', body: JSON.stringify(body) })
      expect(response.status, await response.text()).toBe(200)
    }
    await post(`${fleet.base('c')}/model/claude-opus-4-8/converse`, conversed('summarized'))
    expect(fleet.lastCall('c')?.body.thinking).toEqual(adaptive)
    const shown = { thinkingConfig: { includeThoughts: true } }
    for (const [display, expected] of [
      ['summarized', shown],
      ['omitted', { thinkingConfig: {} }],
    ] as const) {
      await post(`${fleet.base('d')}/model/gemini-2.5-flash/converse`, conversed(display))
      expect(fleet.lastCall('d')?.body.generationConfig ?? {}).toEqual(expected)
      const thinking = { type: 'adaptive', display }
      const body = await sent('d', 'messages', 'gemini-2.5-flash', { thinking })
      expect(body.generationConfig).toEqual({ maxOutputTokens: 9_000, ...expected })
    }
  })

  it('is refused where a model cannot be forced to call a tool', async () => {
    const response = await fetch(`${fleet.base('c')}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({
        model: 'claude-opus-5-5',
        messages: user,
        tools: chatTools,
        tool_choice: 'required',
      }),
    })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('tool_choice: forced calls of tools of this model')
    expect(fleet.vendors.c.calls).toEqual([])
  })
})

describe('the verbosity of answers', () => {
  it.each([
    ['gpt-5.1', 'low'],
    ['gpt-4o', undefined],
    ['gpt-5.1-codex-mini', undefined],
    ['my-model', undefined],
  ])('reaches a server of chat completions with %s as %s', async (model, expected) => {
    const response = await fetch(`${fleet.base('custom')}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model, input: 'Hello', text: { verbosity: 'low' } }),
    })
    expect(response.status, await response.text()).toBe(200)
    expect(fleet.lastCall('a')?.body.verbosity).toBe(expected)
  })
})

describe('sampling and limits', () => {
  it.each<Case>([
    [
      'c',
      'chat',
      'claude-opus-4-8',
      { temperature: 0.7, top_p: 0.9 },
      { temperature: undefined, top_p: undefined },
    ],
    [
      'c',
      'chat',
      'claude-sonnet-4-5',
      { temperature: 0.7, top_p: 0.9 },
      { temperature: 0.7, top_p: undefined },
    ],
    ['c', 'chat', 'claude-sonnet-4-0', { temperature: 1.7 }, { temperature: 1 }],
    [
      'f',
      'messages',
      'anthropic.claude-opus-4-8',
      { temperature: 0.7, top_k: 5 },
      { 'inferenceConfig.temperature': undefined, additionalModelRequestFields: undefined },
    ],
    [
      'f',
      'messages',
      'amazon.nova-pro-v1:0',
      { top_k: 5, temperature: 0.5 },
      { 'inferenceConfig.temperature': 0.5, additionalModelRequestFields: undefined },
    ],
    [
      'd',
      'chat',
      'gemini-3.8-flash',
      { temperature: 0.2, top_p: 0.5 },
      { generationConfig: undefined },
    ],
    [
      'd',
      'chat',
      'gemini-2.5-flash',
      { temperature: 0.2 },
      { 'generationConfig.temperature': 0.2 },
    ],
    [
      'a',
      'messages',
      'gpt-5',
      { temperature: 0.2 },
      { temperature: undefined, max_completion_tokens: 9_000 },
    ],
    ['a', 'messages', 'gpt-5.1', { temperature: 0.2 }, { temperature: 0.2 }],
    ['a', 'messages', 'gpt-4o', { temperature: 0.2 }, { temperature: 0.2, max_tokens: 9_000 }],
    [
      'a',
      'messages',
      'mistral-small-latest',
      { max_tokens: 50 },
      { max_tokens: 50, max_completion_tokens: undefined },
    ],
    [
      'a',
      'chat',
      'gpt-5.5',
      { max_tokens: 50 },
      { max_tokens: undefined, max_completion_tokens: 50 },
    ],
    ['c', 'chat', 'claude-opus-4-8', {}, { max_tokens: 64_000 }],
    ['c', 'responses', 'claude-opus-4-1', {}, { max_tokens: 32_000 }],
    ['f', 'responses', 'anthropic.claude-opus-4-8', {}, { inferenceConfig: undefined }],
  ])(title, async (vendor, format, model, fields, expected) => {
    expectMembers(await sent(vendor, format, model, fields), expected)
  })
})
