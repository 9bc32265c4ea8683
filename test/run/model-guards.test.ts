import { describe, expect, it } from 'vitest'
import { masks, shown } from '../support/vendors/guard-services.ts'
import { completes, failsA } from '../support/vendors/vendor-a.ts'
import {
  a,
  ask,
  askC,
  asked,
  c,
  hook,
  noDigits,
  openai,
  post,
  running,
  tell,
  upstream,
} from './model-guards-rig.ts'

const deep = (levels: number): object => (levels === 0 ? {} : { content: deep(levels - 1) })

describe('prompt guards with failover', () => {
  it('run the guards once per request, whichever provider answers', async () => {
    hook.next.push(masks(noDigits))
    a.next.push(failsA(500, 'oh no'))
    const answer = await openai('other-pair').chat.completions.create(ask)
    expect(answer.choices[0]?.message.content).toBe('Hello from C')
    expect(asked('/request')).toHaveLength(1)
    expect(a.calls.at(-1)?.body.model).toBe('own')
    expect(c.calls.at(-1)?.body).toMatchObject({
      model: 'm-1',
      messages: [{ content: [{ text: 'Hello ##' }] }],
    })
  })
})

describe('prompt guard patterns', () => {
  it.each([
    ['[BuiltIn.Ssn] social security numbers', 'Ssn', 'it is 536-90-4399.', 'it is <SSN>.'],
    [
      '[BuiltIn.CreditCard] credit cards',
      'CreditCard',
      'pay by 4111 1111 1111 1111',
      'pay by <CREDIT_CARD>',
    ],
    [
      '[BuiltIn.PhoneNumber] phone numbers',
      'PhoneNumber',
      'call +1 415-555-0132 now',
      'call <PHONE_NUMBER> now',
    ],
    [
      '[BuiltIn.Email] email addresses',
      'Email',
      'write to jane@example.com',
      'write to <EMAIL_ADDRESS>',
    ],
    [
      '[BuiltIn.CaSin] Canadian social insurance numbers',
      'CaSin',
      'it is 130 692 544.',
      'it is <CA_SIN>.',
    ],
  ])('find %s in requests and in streamed answers', async (_id, builtin, text, masked) => {
    a.answer = completes(...text)
    const streamed = await openai(builtin.toLowerCase())
      .chat.completions.stream(tell(text))
      .finalContent()
    expect(streamed).toBe(masked)
    expect(a.calls.at(-1)?.body.messages).toEqual(tell(masked).messages)
  })

  it('search every place where models read text, as webhooks do', async () => {
    const mail = 'jane@example.com'
    const text = { type: 'text', text: mail }
    const code = { type: 'code_execution_result', stdout: mail, stderr: mail }
    const content = [
      {
        type: 'document',
        title: mail,
        context: mail,
        source: { type: 'content', content: [text] },
      },
      { type: 'document', source: { type: 'content', content: mail } },
      { type: 'code_execution_tool_result', tool_use_id: 't-1', content: code },
      { type: null, text: mail },
      { type: 'image', source: { type: 'url', url: 'http://pictures.test' } },
      { type: 'text', text: 'I am jane@exam' },
      { type: 'text', text: 'ple.com' },
    ]
    const answer = await post(
      'mixed',
      { ...askC, messages: [{ role: 'user', content }] },
      {},
      'messages',
    )
    expect(answer.status).toBe(200)
    expect(JSON.stringify(c.calls.at(-1)?.body)).not.toMatch(/jane|ple\.com/)
    const [seen] = asked('/request')
    const masked = Array.from({ length: 7 }, () => '<EMAIL_ADDRESS>').join(' ')
    const all = { role: 'user', content: `${masked} I am <EMAIL_ADDRESS>` }
    expect(seen && shown(seen)).toEqual([all])
  })

  it.each<[string, string, object]>([
    ['a nested key in the wrong case', 'messages', { system: [{ type: 'text', Text: 'x' }] }],
    [
      'a source key in the wrong case',
      'messages',
      { system: [{ source: { type: 'text', Data: 'x' } }] },
    ],
    [
      'a part key in the wrong case',
      'chat/completions',
      { messages: [{ content: { Text: 'x' } }] },
    ],
    ['nested lists of parts', 'chat/completions', { messages: [{ content: [['x']] }] }],
    [
      'a text of a wrong type',
      'chat/completions',
      { messages: [{ content: [{ text: { value: 'x' } }] }] },
    ],
    ['texts that are nested too deeply', 'chat/completions', { messages: [deep(200)] }],
  ])('refuse %s', async (_name, format, body) => {
    const answer = await post('email', { ...ask, ...body }, {}, format)
    expect(answer.status).toBe(400)
    expect(upstream()).toBe(0)
  })

  it('do not see Passthrough requests, which the status reports', async () => {
    const { message } = await running.condition('GatewayBackend', 'unread', 'Accepted', 'True')
    expect(message).toContain('routes["/raw"]: guards do not see requests of type Passthrough')
  })

  it('without a maximum length are reported, and end a stream that stays undecided too long', async () => {
    const { message } = await running.condition('GatewayBackend', 'unbounded', 'Accepted', 'True')
    expect(message).toMatch(/promptGuard\.response\[0\]\.regex\.matches\[0\]/)
    a.answer = completes('BEGIN ', 'secret', ' END', ' fine')
    expect(await openai('unbounded').chat.completions.stream(ask).finalContent()).toBe(
      '<masked> fine',
    )
    a.answer = completes('BEGIN ', ...Array.from({ length: 40 }, () => 'x'.repeat(60_000)))
    const stream = await openai('unbounded').chat.completions.create({ ...ask, stream: true })
    let seen = ''
    const reading = (async () => {
      for await (const part of stream) seen += part.choices[0]?.delta.content ?? ''
    })()
    await expect(reading).rejects.toThrow(/undecided/)
    expect(seen).toBe('')
  })
})
