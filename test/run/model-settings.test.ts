import { describe, expect, it } from 'vitest'
import type { Vendor } from '../support/vendors/vendor.ts'
import { completes } from '../support/vendors/vendor-a.ts'
import { failsC, sayPiece, says, startMessage } from '../support/vendors/vendor-c.ts'
import { waitFor } from '../support/wait-for.ts'
import { a, anthropic, ask, askC, base, c, collect, lastCall, openai } from './models-rig.ts'

describe('settings for models', () => {
  it('[BackendAI.defaults] [BackendAI.overrides] [FieldDefault.field] [FieldDefault.value] fill and overwrite fields', async () => {
    await openai('shaped').chat.completions.create({ ...ask, temperature: 1, user: 'me' })
    expect(lastCall(a)?.body).toMatchObject({ temperature: 1, seed: 7, user: 'gateway' })
  })

  it('[BackendAI.modelAliases] replace names of models', async () => {
    await openai('shaped').chat.completions.create({ ...ask, model: 'fast' })
    expect(lastCall(a)?.body.model).toBe('m-fast')
    await openai('shaped').chat.completions.create({ ...ask, model: 'claude-x' })
    expect(lastCall(a)?.body.model).toBe('m-any')
  })

  it('[BackendAI.prompt] [AIPromptEnrichment.prepend] [AIPromptEnrichment.append] [AIPromptEnrichment.static] [Message.role] [Message.content] prepend and append messages to those of the request', async () => {
    for (const _ of [1, 2]) {
      await openai('shaped').chat.completions.create(ask)
      expect(lastCall(a)?.body.messages).toEqual([
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello' },
        { role: 'user', content: 'Answer now.' },
      ])
    }
  })
})

describe('token limits', () => {
  it('[LocalRateLimit.tokens] charge the tokens used, in streams too, and refuse only later requests', async () => {
    // 18 tokens each.
    await openai('limited').chat.completions.create(ask)
    await collect(await openai('limited').chat.completions.create({ ...ask, stream: true }))
    await waitFor('the limit', async () => {
      const answer = await fetch(`${base('limited')}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(ask),
      })
      return answer.status === 429
    })
  })
})

describe('token limits for answers that the client abandons', () => {
  it('charge the reported tokens plus an estimate of the rest', async () => {
    // The first event reports 18 tokens; 39 more bytes count as 10.
    const leave = async (name: string) => {
      c.next.push((_, response) => {
        startMessage('m', response)
        sayPiece('x'.repeat(39), response)
      })
      const stream = await openai(name).chat.completions.create({ ...ask, stream: true })
      for await (const { choices } of stream) if (choices[0]?.delta.content) break
      stream.controller.abort()
      await waitFor('the vendor to be left', () => c.aborted > 0)
      c.aborted = 0
    }
    const status = async (name: string) => {
      const body = JSON.stringify(ask)
      return (await fetch(`${base(name)}/v1/chat/completions`, { method: 'POST', body })).status
    }
    await leave('left-at-28')
    await leave('left-at-29')
    c.answer = failsC(400, 'invalid_request_error', 'no')
    await waitFor('the charge', async () => (await status('left-at-28')) === 429)
    expect(await status('left-at-29')).toBe(400)
  })
})

describe('prompt guards', () => {
  const tell = (content: string) => ({ ...ask, messages: [{ role: 'user' as const, content }] })
  const content = (vendor: Vendor) =>
    (lastCall(vendor)?.body.messages as { content: string }[] | undefined)?.[0]?.content

  it('[BackendAI.promptGuard] [AIPromptGuard.request] [PromptguardRequest.regex] [Regex.matches] [Regex.builtins] [Regex.action=Mask] mask requests', async () => {
    const text = 'I am jane@example.com, \u0073ecret-42, 4111 1111 1111 1111, 536-90-4399'
    await openai('masked-a').chat.completions.create(tell(text))
    expect(content(a)).toBe('I am <EMAIL_ADDRESS>, <masked>, <CREDIT_CARD>, <SSN>')
    await openai('masked-c').chat.completions.create(tell(text))
    expect(lastCall(c)?.text).not.toMatch(/jane|secret|4111/)
  })

  it('[Regex.action=Reject] [error.1] [CustomResponse.message] [CustomResponse.statusCode] refuse requests with the answer that is configured', async () => {
    const post = (name: string, text: string) =>
      fetch(`${base(name)}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(tell(text)),
      })
    const refused = await post('refused', 'secret-1')
    expect(refused.status).toBe(403)
    expect(await refused.text()).toBe('The request was rejected due to inappropriate content')
    const custom = await post('refused-so', 'secret-1')
    expect(custom.status).toBe(422)
    expect(await custom.text()).toBe('not with us')
    expect(a.calls.length + c.calls.length).toBe(0)
    expect((await post('refused', 'harmless')).status).toBe(200)
  })

  it('[AIPromptGuard.response] [PromptguardResponse.regex] [error.2] mask answers, whole and however a stream is split', async () => {
    const secret = 'mail bob@example.com or token-1234.'
    const masked = 'mail <EMAIL_ADDRESS> or <masked>.'
    a.answer = completes(...secret)
    c.answer = says(...secret)
    const whole = await openai('masked-a').chat.completions.create(ask)
    expect(whole.choices[0]?.message.content).toBe(masked)
    const streamed = await openai('masked-a').chat.completions.stream(ask).finalContent()
    expect(streamed).toBe(masked)
    const messages = await anthropic('masked-a').messages.stream(askC).finalText()
    expect(messages).toBe(masked)
    const native = await anthropic('masked-c').messages.stream(askC).finalText()
    expect(native).toBe(masked)
    const responses = openai('masked-c').responses.stream({ model: 'm', input: 'Hello' })
    expect((await responses.finalResponse()).output_text).toBe(masked)
  })

  it('forward exactly the text that they have checked', async () => {
    const twice = '"messages":[{"role":"user","content":"jane@example.com"}],'
    const last = '"messages":[{"role":"user","content":"Hello"}]'
    const body = `{"model":"m-1",${twice}${last}}`
    await fetch(`${base('masked-a')}/v1/chat/completions`, { method: 'POST', body })
    expect(lastCall(a)?.text).toBe(`{"model":"m-1",${last}}`)
    const other = `{"model":"m-1",${last},${twice.replace('messages', 'Messages').slice(0, -1)}}`
    const init = { method: 'POST', body: other }
    const refused = await fetch(`${base('masked-a')}/v1/chat/completions`, init)
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('must be messages')
    // Without guards, too: the messages may name files of other clients.
    expect((await fetch(`${base('a')}/v1/chat/completions`, init)).status).toBe(400)
  })

  it('block a stream that cannot be decoded', async () => {
    a.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end('data: {"choices":[{"delta":{"content":"bob@example.com"}}]\n\ndata: [DONE]\n\n')
    }
    const streamed = { method: 'POST', body: JSON.stringify({ ...ask, stream: true }) }
    const answer = await fetch(`${base('masked-a')}/v1/chat/completions`, streamed)
    const text = await answer.text()
    expect(text).toContain('an event of the response is not JSON')
    expect(text).not.toContain('bob@example.com')
  })
})
