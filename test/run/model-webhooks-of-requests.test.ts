import type Anthropic from '@anthropic-ai/sdk'
import { describe, expect, it } from 'vitest'
import { acts, masks, shown } from '../support/vendors/guard-services.ts'
import { json, type Vendor } from '../support/vendors/vendor.ts'
import { completes } from '../support/vendors/vendor-a.ts'
import {
  a,
  anthropic,
  ask,
  askC,
  asked,
  c,
  hook,
  moderation,
  noDigits,
  openai,
  post,
  tell,
  upstream,
} from './model-guards-rig.ts'

describe('a webhook for requests', () => {
  it('[PromptguardRequest.webhook] [Webhook.backendRef] receives the texts with their roles, and lets them pass', async () => {
    await openai('hooked-a').chat.completions.create(ask)
    expect(shown(asked('/request')[0]!)).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hello 42' },
    ])
    expect(a.calls.at(-1)?.body.messages).toEqual(ask.messages)
    await anthropic('hooked-c').messages.create({ ...askC, system: 'Be kind.' })
    expect(shown(asked('/request')[1]!)).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hello 42' },
    ])
  })

  it('masks texts, and keeps images and tool calls in place', async () => {
    hook.next.push(masks(noDigits))
    const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA==' } }
    await openai('hooked-a').chat.completions.create({
      model: 'm-1',
      messages: [
        {
          role: 'user',
          content: [{ type: 'text', text: 'call 1' }, image, { type: 'text', text: 'or 2' }],
        },
        {
          role: 'assistant',
          content: 'no 3',
          tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 't', content: 'ok' },
      ],
    })
    expect(shown(asked('/request')[0]!)[0]).toEqual({ role: 'user', content: 'call 1 or 2' })
    expect(a.calls.at(-1)?.body.messages).toMatchObject([
      { role: 'user', content: [image, { type: 'text', text: 'call # or #' }] },
      { role: 'assistant', content: 'no #', tool_calls: [{ id: 't' }] },
      { role: 'tool', tool_call_id: 't', content: 'ok' },
    ])
  })

  it('can replace the conversation', async () => {
    const messages = [{ role: 'user', content: 'Something else' }]
    hook.next.push(acts({ body: { messages } }), acts({}), acts({ body: { messages } }))
    await openai('hooked-a').chat.completions.create(ask)
    expect(a.calls.at(-1)?.body.messages).toEqual(messages)
    await anthropic('hooked-c').messages.create({ ...askC, system: 'Be kind.' })
    expect(c.calls.at(-1)?.body).toEqual({ ...askC, messages })
  })

  it('receives the texts of every client format', async () => {
    hook.answer = masks(noDigits)
    await openai('hooked-a').responses.create({
      model: 'm-1',
      instructions: 'Be 1.',
      input: 'Hello 2',
    })
    expect(a.calls.at(-1)?.body).toMatchObject({ instructions: 'Be #.', input: 'Hello #' })
    const variables = { city: 'Bern 3', more: { type: 'input_text' as const, text: 'no 4' } }
    const prompt = { id: 'pmpt_1', variables }
    await openai('hooked-a').responses.create({ model: 'm-1', prompt, input: 'Hello 2' })
    expect(a.calls.at(-1)?.body.prompt).toEqual({
      id: 'pmpt_1',
      variables: { city: 'Bern #', more: { type: 'input_text', text: 'no #' } },
    })
    await openai('hooked-a').embeddings.create({ model: 'e', input: ['a 1', 'b 2'] })
    expect(a.calls.at(-1)?.body.input).toEqual(['a #', 'b #'])
    const document: Anthropic.DocumentBlockParam = {
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: 'no 3' },
    }
    const result: Anthropic.ToolResultBlockParam = {
      type: 'tool_result',
      tool_use_id: 't',
      content: [{ type: 'text', text: 'no 4' }],
    }
    for (const part of [document, result]) {
      const asking = { ...askC, messages: [{ role: 'user' as const, content: [part] }] }
      await anthropic('hooked-c').messages.create(asking)
      expect(c.calls.at(-1)?.text).toContain('no #')
      expect(c.calls.at(-1)?.text).not.toMatch(/no \d/)
    }
    // A guard cannot read token numbers.
    const tokens = openai('hooked-a').embeddings.create({ model: 'e', input: [[15339, 1917]] })
    await expect(tokens).rejects.toMatchObject({ status: 400 })
  })

  it('[PromptguardRequest.response] [CustomResponse.use] refuses with its own answer, or else that of the guard', async () => {
    hook.next.push(acts({ body: 'go away', status_code: 418, reason: 'because' }))
    const own = await post('hooked-a', ask)
    expect([own.status, await own.text()]).toEqual([418, 'go away'])
    hook.next.push(acts({ status_code: 451 }))
    const words = await post('hooked-a', ask)
    expect([words.status, await words.text()]).toEqual([451, 'not here'])
    hook.next.push(acts({ body: 'no' }))
    expect((await post('hooked-a', ask)).status).toBe(451)
    hook.next.push(acts({ body: 'no' }))
    expect((await post('hooked-c', ask)).status).toBe(403)
    expect(upstream()).toBe(0)
  })

  it('blocks the request if it fails', async () => {
    const bad = [
      acts({ reason: 'fine' }, 500),
      acts(undefined),
      acts({ body: { messages: [{ role: 'user' }] } }),
      acts({ body: 7 }),
      (_: unknown, response: Parameters<Vendor['answer']>[1]) => response.end('no JSON'),
      (_: unknown, response: Parameters<Vendor['answer']>[1]) => void response.destroy(),
    ]
    for (const answer of bad) {
      hook.next.length = 0
      // A connection that was kept and is closed is tried once more.
      hook.next.push(answer, answer)
      const refused = await post('hooked-a', ask)
      expect(refused.status).toBe(503)
      expect(await refused.json()).toMatchObject({ error: { message: 'prompt guard failed' } })
    }
    await expect(openai('dead').chat.completions.create(ask)).rejects.toMatchObject({ status: 503 })
    expect(upstream()).toBe(0)
  })

  it('blocks the request if the answer is none of the actions, exactly', async () => {
    const refusal = { body: 'no', status_code: 403 }
    const others = [
      { Reject: refusal },
      { reject: true },
      { statusCode: 403, Body: 'no' },
      { reason: 5 },
      { reason: null, zork: 1 },
      { status_code: '403' },
      { status_code: true },
      { ...refusal, decision: 'deny' },
      { body: { messages: [{ role: 'user', content: 'x' }] }, status_code: 403 },
      { body: { messages: [{ role: 7, content: 'x' }] } },
      { body: ['no'] },
      [refusal],
      'reject',
      null,
    ].map((action) => JSON.stringify({ action }))
    const bad = [
      ...others,
      '{"action":{"body":"no","status_code":403},"action":{}}',
      '{"action":{"body":"no","body":null}}',
      '{"action":{"reason":"a","r\\u0065ason":"b"}}',
      '{"action":{},"body":"no","status_code":403}',
      '{"action":{},"Action":{"body":"no"}}',
      '{"body":"no","status_code":403}',
      '[{"action":{}}]',
      '{"action":{}} {"action":{"body":"no"}}',
      '',
    ]
    for (const answer of bad) {
      hook.next.push((_, response) => void response.end(answer))
      expect([answer, (await post('hooked-a', ask)).status]).toEqual([answer, 503])
    }
    expect(upstream()).toBe(0)
    for (const action of [
      {},
      { reason: 'fine' },
      { reason: null, body: null, status_code: null },
    ]) {
      hook.next.push(acts(action))
      expect((await post('hooked-a', ask)).status).toBe(200)
    }
  })

  it('[Webhook.forwardHeaderMatches] receives the headers that match, and no others', async () => {
    a.answer = (call, response) => {
      response.setHeader('x-region', 'eu')
      response.setHeader('x-secret', 'no')
      completes('Hello')(call, response)
    }
    await post('forwarding', ask, {
      'x-tenant': 'acme',
      'x-trace': 't-12',
      authorization: 'Bearer k',
    })
    const [request] = asked('/request')
    expect(request?.headers).toMatchObject({ 'x-tenant': 'acme', 'x-trace': 't-12' })
    expect(request?.headers.authorization).toBe(undefined)
    const [response] = asked('/response')
    expect(response?.headers['x-region']).toBe('eu')
    expect(response?.headers['x-secret']).toBe(undefined)
    expect(response?.headers['x-tenant']).toBe(undefined)
    await post('forwarding', ask, { 'x-tenant': 'other', 'x-trace': 'nt-12' })
    const again = asked('/request')[1]
    expect(again?.headers['x-tenant']).toBe(undefined)
    expect(again?.headers['x-trace']).toBe(undefined)
  })
})

describe('moderation by vendorA', () => {
  it('[PromptguardRequest.vendorAModeration] [VendorAModeration.policies] calls the vendor with its own credential and trusted authorities', async () => {
    const fine = await openai('moderated').chat.completions.create(ask)
    expect(fine.choices[0]?.message.content).toBe('Hello from A')
    const [call] = moderation.calls
    expect(call?.body).toEqual({ input: ['Be kind.', 'Hello 42'], model: 'omni-moderation-latest' })
    expect(call?.headers.authorization).toBe('Bearer moderation-token')
    const refused = await post('moderated', tell('violence!'))
    expect([refused.status, await refused.text()]).toEqual([403, 'be kind'])
    expect(upstream()).toBe(1)
  })

  it('[VendorAModeration.model] uses the configured moderation model', async () => {
    await anthropic('moderated-by').messages.create(askC)
    expect(moderation.calls[0]?.body.model).toBe('text-moderation-stable')
    expect(moderation.calls[0]?.headers.authorization).toBe('Bearer inline-token')
  })

  it('blocks the request if it fails', async () => {
    moderation.next.push((_, response) => json(response, 401, { error: {} }))
    expect((await post('moderated', ask)).status).toBe(503)
    const unclear = [
      '{"results":[]}',
      '{"results":{"flagged":false}}',
      '{"results":[{"flagged":"no"}]}',
      '{"results":[{"flagged":true,"flagged":false}]}',
      '{"results":[{"flagged":true}],"results":[{"flagged":false}]}',
    ]
    for (const answer of unclear) {
      moderation.next.push((_, response) => void response.end(answer))
      expect([answer, (await post('moderated', ask)).status]).toEqual([answer, 503])
    }
    expect((await post('moderated-untrusted', ask)).status).toBe(503)
    expect(upstream()).toBe(0)
  })
})
