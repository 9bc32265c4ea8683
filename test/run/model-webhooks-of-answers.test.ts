import { describe, expect, it } from 'vitest'
import { acts, masks, shown } from '../support/vendors/guard-services.ts'
import { saysSegments } from '../support/vendors/segments.ts'
import { openStream, sendEvent } from '../support/vendors/vendor.ts'
import { chunk, completes } from '../support/vendors/vendor-a.ts'
import { says, startMessage } from '../support/vendors/vendor-c.ts'
import {
  a,
  anthropic,
  ask,
  askC,
  asked,
  base,
  c,
  hook,
  noDigits,
  openai,
  post,
  tell,
} from './model-guards-rig.ts'

describe('a webhook for answers', () => {
  it('[PromptguardResponse.webhook] receives the whole answer, and lets it pass unchanged', async () => {
    const whole = await openai('hooked-a').chat.completions.create(ask)
    expect(whole.choices[0]?.message.content).toBe('Hello from A')
    const streamed = await openai('hooked-a').chat.completions.stream(ask).finalContent()
    expect(streamed).toBe('Hello from A')
    await anthropic('hooked-c').messages.stream(askC).finalMessage()
    await openai('hooked-c').responses.stream({ model: 'm', input: 'x' }).finalResponse()
    expect(asked('/response').map((call) => shown(call))).toEqual([
      [{ role: 'assistant', content: 'Hello from A' }],
      [{ role: 'assistant', content: 'Hello from A' }],
      [{ role: 'assistant', content: 'Hello from C' }],
      [{ role: 'assistant', content: 'Hello from C' }],
    ])
  })

  it('masks texts, in streams of every format too', async () => {
    a.answer = completes('It is ', '4', '2.')
    c.answer = says('It is ', '4', '2.')
    hook.answer = masks(noDigits)
    const whole = await openai('hooked-a').chat.completions.create(ask)
    expect(whole.choices[0]?.message.content).toBe('It is ##.')
    expect(await openai('hooked-a').chat.completions.stream(ask).finalContent()).toBe('It is ##.')
    expect(await openai('hooked-c').chat.completions.stream(ask).finalContent()).toBe('It is ##.')
    expect(await anthropic('hooked-c').messages.stream(askC).finalText()).toBe('It is ##.')
    expect(await anthropic('hooked-a').messages.stream(askC).finalText()).toBe('It is ##.')
    for (const name of ['hooked-a', 'hooked-c']) {
      const stream = openai(name).responses.stream({ model: 'm', input: 'x' })
      let deltas = ''
      stream.on('response.output_text.delta', ({ delta }) => {
        deltas += delta
      })
      expect((await stream.finalResponse()).output_text).toBe('It is ##.')
      expect(deltas).toBe('It is ##.')
    }
  })

  it('[PromptguardResponse.response] refuses an answer before any of it is seen, whole or streamed', async () => {
    for (const stream of [false, true]) {
      hook.next.push(acts({}), acts({ body: 'no such talk', status_code: 409 }))
      const own = await post('hooked-a', { ...ask, stream })
      expect([own.status, await own.text()]).toEqual([409, 'no such talk'])
      hook.next.push(acts({}), acts({ status_code: 0 }))
      const words = await post('hooked-a', { ...ask, stream })
      expect([words.status, await words.text()]).toEqual([451, 'not here'])
    }
    hook.next.push(acts({}), acts({ status_code: 0 }))
    const byDefault = await post('hooked-c', ask)
    expect([byDefault.status, await byDefault.text()]).toEqual([
      403,
      'The response was rejected due to inappropriate content',
    ])
  })

  it('withholds the answer if it fails or returns a mask of another shape', async () => {
    for (const stream of [false, true]) {
      const dead = await post('dead-behind', { ...ask, stream })
      expect(dead.status).toBe(503)
      expect(await dead.text()).not.toContain('from C')
      hook.next.push(acts({}), acts({ body: { choices: [] } }))
      expect((await post('hooked-a', { ...ask, stream })).status).toBe(503)
    }
  })

  it('does not receive a truncated answer, which becomes an error with a status', async () => {
    a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, chunk('m', { content: 'Hel' }), undefined)
      response.write('data: {"half', () => response.destroy())
    })
    const cut = await post('hooked-a', { ...ask, stream: true })
    expect(cut.status).toBe(503)
    expect(await cut.json()).toMatchObject({ error: { message: expect.any(String) } })
    expect(asked('/response')).toEqual([])
    // Where another provider can be asked, it is.
    a.next.push((_, response) => {
      openStream(response)
      response.write('data: {"half', () => response.destroy())
    })
    expect(await openai('pair').chat.completions.stream(ask).finalContent()).toBe('Hello from C')
  })

  it('receives the text that a vendor repeats at the end if it differs from the stream', async () => {
    hook.answer = masks((text) => text.replace('hidden', '***'))
    a.next.push((_, response) => {
      openStream(response)
      let number = 0
      const send = (type: string, fields: object) =>
        sendEvent(response, { type, sequence_number: number++, ...fields }, type)
      const place = { item_id: 'msg', output_index: 0, content_index: 0 }
      const part = { type: 'output_text', text: 'a hidden text', annotations: [] }
      const item = {
        id: 'msg',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [part],
      }
      send('response.output_text.delta', { ...place, delta: 'a text' })
      send('response.output_text.done', { ...place, text: 'a hidden text' })
      send('response.completed', {
        response: { id: 'r', object: 'response', status: 'completed', model: 'm', output: [item] },
      })
      response.end()
    })
    const answer = await fetch(`${base('hooked-a')}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', input: 'x', stream: true }),
    })
    const text = await answer.text()
    expect(text).toContain('a *** text')
    expect(text).not.toContain('hidden')
  })

  it('works with patterns in the order of the guards', async () => {
    c.answer = says('mail bob@exa', 'mple.com 42')
    hook.answer = masks(noDigits)
    const streamed = await anthropic('mixed').messages.stream(askC).finalText()
    expect(streamed).toBe('mail <EMAIL_ADDRESS> ##')
    expect(asked('/response').map((call) => shown(call)[0]?.content)).toEqual([
      'mail <EMAIL_ADDRESS> 42',
    ])
    const refused = await post('mixed', tell('bob@example.com 123'))
    expect(refused.status).toBe(403)
    expect(shown(asked('/request').at(-1)!).at(-1)?.content).toBe('<EMAIL_ADDRESS> 123')
  })

  it('masks across the blocks of a held stream as in a whole answer', async () => {
    const segments = [
      { kind: 'text', pieces: ['mail bob', '@exa'] },
      { kind: 'text', pieces: ['mple.com 42'] },
    ] as const
    c.answer = saysSegments(segments)
    hook.answer = masks((text) => text)
    const streamed = await anthropic('mixed').messages.stream(askC).finalMessage()
    const whole = await anthropic('mixed').messages.create(askC)
    const texts = ['mail <EMAIL_ADDRESS>', ' 42'].map((text) => ({ type: 'text', text }))
    expect(whole.content).toEqual(texts)
    expect(streamed.content).toEqual(texts)
    const [first, second] = asked('/response').map((call) => shown(call))
    expect(first).toEqual(second)
  })

  it('does not delay events without text, and keeps their order', async () => {
    c.next.push((_, response) => {
      startMessage('m', response)
      sendEvent(response, { type: 'content_block_stop', index: 0 }, 'content_block_stop')
      const delta = { stop_reason: 'end_turn', stop_sequence: null }
      sendEvent(
        response,
        { type: 'message_delta', delta, usage: { output_tokens: 5 } },
        'message_delta',
      )
      sendEvent(response, { type: 'message_stop' }, 'message_stop')
      response.end()
    })
    const message = await anthropic('hooked-c').messages.stream(askC).finalMessage()
    expect(message.stop_reason).toBe('end_turn')
  })
})
