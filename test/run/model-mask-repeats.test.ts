/**
 * Text that an answer repeats: log probabilities list its tokens, citations quote their sources, audio
 * has a transcript. What a guard has masked must not stand there, whole or streamed.
 */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { useFixture } from '../support/fixture.ts'
import { staticBackend, toBackend } from '../support/manifests.ts'
import { reached, routes, useFleet } from '../support/vendors/fleet.ts'
import { masks, startWebhook } from '../support/vendors/guard-services.ts'
import { json, openStream, sendEvent } from '../support/vendors/vendor.ts'

const masked = { response: [{ regex: { builtins: ['Ssn', 'Email'] } }] }

const hook = useFixture(startWebhook)
const fleet = useFleet(({ at }) => {
  const more = { ai: { routes, promptGuard: masked } }
  const webhook = { backendRef: toBackend('hook') }
  const asking = { ai: { routes, promptGuard: { response: [{ webhook }] } } }
  const project = { projectId: 'my-project', region: 'us-central1' }
  return [
    [staticBackend('hook', hook.port)],
    reached('a', { vendorA: {}, ...at('a') }, more),
    reached('b', { vendorB: { endpoint: 'unused.example' }, ...at('b') }, more),
    reached('c', { vendorC: {}, ...at('c') }, more),
    reached('e', { vendorE: project, ...at('e') }, more),
    reached('open', { vendorA: {}, ...at('a') }, { ai: { routes } }),
    reached('hooked-a', { vendorA: {}, ...at('a') }, asking),
    reached('hooked-c', { vendorC: {}, ...at('c') }, asking),
  ]
})
beforeEach(() => {
  fleet.forget()
  hook.answer = masks((text) => text.replace(/\d/g, '#'))
})

const leak = /123|45-67|6789|bob|49,50,51/
const pieces = ['It is 123', '-45-', '6789, ', 'bob@exa', 'mple.com!']
const text = pieces.join('')
const source = 'He has 123-45-6789.'
const title = 'By bob@example.com'

/** The body of an answer, as the gateway sends it. */
async function ask(name: string, path: string, stream: boolean): Promise<string> {
  const model = name === 'e' ? 'claude-sim' : 'm-1'
  const messages = [{ role: 'user', content: 'Hello' }]
  const more = path === '/v1/responses' ? { input: 'Hello' } : { messages, max_tokens: 100 }
  const answer = await fetch(`${fleet.base(name)}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ model, stream, ...more }),
  })
  const body = await answer.text()
  expect(answer.status, body).toBe(200)
  return body
}

const eventsOf = (body: string) =>
  body
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)))

const tokenOf = (token: string) => ({
  token,
  bytes: [...Buffer.from(token)],
  logprob: -0.1,
  top_logprobs: [{ token, bytes: [...Buffer.from(token)], logprob: -0.1 }],
})

/** Chat completions whose log probabilities, citations and audio say what the text does. */
function completes(choices: number): void {
  const head = { id: 'chatcmpl-1', created: 1, model: 'm-1' }
  const url = 'https://example.com/'
  const annotation = {
    type: 'url_citation',
    url_citation: { start_index: 0, end_index: 5, title, url },
  }
  const context = { citations: [{ content: source, title, url, chunk_id: '0' }], intent: source }
  const search_results = [{ title, url, snippet: source }]
  fleet.vendors.a.answer = ({ body }, response) => {
    const all = [...Array(choices).keys()]
    if (body.stream !== true) {
      const logprobs = { content: pieces.map(tokenOf), refusal: pieces.map(tokenOf) }
      const audio = { id: 'audio_1', data: 'AAAA', expires_at: 1, transcript: text }
      const message = {
        role: 'assistant',
        content: text,
        refusal: text,
        annotations: [annotation],
        context,
        audio,
      }
      const list = all.map((index) => ({ index, message, text, logprobs, finish_reason: 'stop' }))
      json(response, 200, { ...head, object: 'chat.completion', choices: list, search_results })
      return
    }
    openStream(response)
    const send = (index: number, more: object) => {
      const choice = { index, delta: {}, logprobs: null, finish_reason: null, ...more }
      const object = 'chat.completion.chunk'
      sendEvent(response, { ...head, object, choices: [choice], search_results })
    }
    const repeated = { annotations: [annotation], context }
    for (const index of all) send(index, { delta: { role: 'assistant', content: '', ...repeated } })
    for (const piece of pieces) {
      for (const index of all) {
        const logprobs = { content: [tokenOf(piece)], refusal: [tokenOf(piece)] }
        const delta = { content: piece, refusal: piece, audio: { id: 'a', transcript: piece } }
        send(index, { delta, text: piece, logprobs, token_ids: [...Buffer.from(piece)] })
      }
    }
    for (const index of all) send(index, { finish_reason: 'stop' })
    sendEvent(response, '[DONE]')
    response.end()
  }
  fleet.vendors.b.answer = fleet.vendors.a.answer
}

const expected = 'It is <SSN>, <EMAIL_ADDRESS>!'

describe('a chat completion that is masked', () => {
  it.each(['a', 'b'])('does not repeat the masked text elsewhere (vendor %s)', async (name) => {
    completes(2)
    const whole = await ask(name, '/v1/chat/completions', false)
    expect(whole).not.toMatch(leak)
    const { choices, search_results } = JSON.parse(whole)
    const streamed = await ask(name, '/v1/chat/completions', true)
    expect(streamed).not.toMatch(leak)
    const events = eventsOf(streamed)
    expect(search_results[0]).toEqual({
      title: 'By <EMAIL_ADDRESS>',
      snippet: 'He has <SSN>.',
      url: 'https://example.com/',
    })
    expect(events[0].search_results).toEqual(search_results)
    for (const at of [0, 1]) {
      const { message, logprobs, text: plain } = choices[at]
      expect(logprobs).toBeNull()
      expect([message.content, message.refusal, message.audio.transcript, plain]).toEqual(
        Array(4).fill(expected),
      )
      expect(message.audio.data).toBe('AAAA')
      const chunks = events.flatMap((event) => event.choices).filter(({ index }) => index === at)
      for (const chunk of chunks) expect(chunk.logprobs).toBeNull()
      const joined = (read: (chunk: (typeof chunks)[number]) => string | undefined) =>
        chunks.map((chunk) => read(chunk) ?? '').join('')
      expect(joined(({ delta }) => delta?.content)).toBe(expected)
      expect(joined(({ delta }) => delta?.refusal)).toBe(expected)
      expect(joined(({ delta }) => delta?.audio?.transcript)).toBe(expected)
      expect(joined((chunk) => chunk.text)).toBe(expected)
      expect(chunks[0].delta.annotations).toEqual(message.annotations)
      expect(chunks[0].delta.context).toEqual(message.context)
      expect(message.annotations[0].url_citation.title).toBe('By <EMAIL_ADDRESS>')
      expect(message.context.citations[0].content).toBe('He has <SSN>.')
    }
  })

  it('keeps log probabilities if no guard reads the answer', async () => {
    completes(1)
    const whole = JSON.parse(await ask('open', '/v1/chat/completions', false))
    expect(whole.choices[0].logprobs.content).toHaveLength(pieces.length)
    const events = eventsOf(await ask('open', '/v1/chat/completions', true))
    expect(events.filter(({ choices }) => choices[0].logprobs)).toHaveLength(pieces.length)
  })

  it('does not repeat the text that a webhook masks elsewhere', async () => {
    completes(1)
    for (const stream of [false, true]) {
      const body = await ask('hooked-a', '/v1/chat/completions', stream)
      const choices = stream
        ? eventsOf(body).flatMap((event) => event.choices)
        : JSON.parse(body).choices
      const [{ message, delta }] = choices
      const { annotations, context } = message ?? delta
      for (const { logprobs } of choices) expect(logprobs).toBeNull()
      expect(annotations[0].url_citation).toMatchObject({ title: '', url: 'https://example.com/' })
      expect(context.citations[0]).toMatchObject({ content: '', title: '' })
    }
  })
})

/** A message with two cited blocks, of which the second becomes empty. */
function cites(): void {
  const head = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm-1',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  }
  const blocks = ['It is 123-45', '-6789', ' so.']
  const citation = {
    type: 'char_location',
    cited_text: source,
    document_index: 0,
    document_title: title,
    start_char_index: 0,
    end_char_index: 19,
    file_id: null,
  }
  const found = {
    type: 'web_search_result_location',
    cited_text: source,
    title,
    url: 'https://example.com/',
    encrypted_index: 'abc',
  }
  const citations = [citation, found]
  fleet.vendors.c.answer = ({ body }, response) => {
    if (body.stream !== true) {
      const content = blocks.map((block) => ({ type: 'text', text: block, citations }))
      json(response, 200, { ...head, content, stop_reason: 'end_turn' })
      return
    }
    openStream(response)
    const send = (type: string, fields: object) => sendEvent(response, { type, ...fields }, type)
    send('message_start', { message: { ...head, content: [], stop_reason: null } })
    for (const [index, block] of blocks.entries()) {
      const content_block = { type: 'text', text: '', citations: [citation] }
      send('content_block_start', { index, content_block })
      for (const piece of [block.slice(0, 3), block.slice(3)]) {
        send('content_block_delta', { index, delta: { type: 'text_delta', text: piece } })
      }
      const delta = { type: 'citations_delta', citation: found }
      send('content_block_delta', { index, delta })
      send('content_block_stop', { index })
    }
    const delta = { stop_reason: 'end_turn', stop_sequence: null }
    send('message_delta', { delta, usage: { output_tokens: 1 } })
    send('message_stop', {})
    response.end()
  }
  fleet.vendors.e.answer = fleet.vendors.c.answer
}

describe('a message that is masked', () => {
  const anthropic = (name: string) =>
    new Anthropic({ baseURL: fleet.base(name), apiKey: 'client-key', maxRetries: 0 })

  it.each(['c', 'e'])('has masked citations of its blocks (vendor %s)', async (name) => {
    cites()
    const model = name === 'e' ? 'claude-sim' : 'm-1'
    const asked = {
      model,
      max_tokens: 100,
      messages: [{ role: 'user' as const, content: 'Hello' }],
    }
    const whole = await anthropic(name).messages.create(asked)
    const streamed = await anthropic(name).messages.stream(asked).finalMessage()
    const citations = [
      { type: 'char_location', cited_text: 'He has <SSN>.', document_title: 'By <EMAIL_ADDRESS>' },
      { cited_text: 'He has <SSN>.', title: 'By <EMAIL_ADDRESS>', url: 'https://example.com/' },
    ]
    expect(whole.content).toMatchObject([
      { type: 'text', text: 'It is <SSN>', citations },
      { type: 'text', text: ' so.', citations },
    ])
    expect(streamed.content).toEqual(whole.content)
    expect(await ask(name, '/v1/messages', false)).not.toMatch(leak)
    expect(await ask(name, '/v1/messages', true)).not.toMatch(leak)
  })

  it('has empty citations if a webhook masks, since webhooks do not receive them', async () => {
    cites()
    for (const stream of [false, true]) {
      const body = await ask('hooked-c', '/v1/messages', stream)
      expect(body).not.toMatch(leak)
      expect(body).toContain('"cited_text":""')
      hook.answer = masks((shown) => shown)
      expect(await ask('hooked-c', '/v1/messages', stream)).toContain(source)
      hook.answer = masks((shown) => shown.replace(/\d/g, '#'))
    }
  })
})

/** A response with a text and a spoken part, and everything that its events repeat. */
function responds(): void {
  const annotation = {
    type: 'url_citation',
    start_index: 0,
    end_index: 5,
    title,
    url: 'https://e/',
  }
  const head = { id: 'resp_1', object: 'response', created_at: 1, model: 'm-1', error: null }
  const said = {
    type: 'output_text',
    text,
    annotations: [annotation],
    logprobs: pieces.map(tokenOf),
  }
  const spoken = { type: 'output_audio', data: 'AAAA', transcript: text }
  const message = (content: object[]) => ({
    id: 'item_0',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content,
  })
  const whole = {
    ...head,
    status: 'completed',
    output: [message([spoken, said])],
    output_text: text,
  }
  fleet.vendors.a.answer = ({ body }, response) => {
    if (body.stream !== true) {
      json(response, 200, whole)
      return
    }
    let sequence_number = 0
    const send = (type: string, fields: object) =>
      sendEvent(response, { type, sequence_number: sequence_number++, ...fields }, type)
    openStream(response)
    send('response.created', { response: { ...head, status: 'in_progress', output: [] } })
    send('response.output_item.added', { output_index: 0, item: message([]) })
    const first = { item_id: 'item_0', output_index: 0, content_index: 0 }
    send('response.content_part.added', { ...first, part: { ...spoken, transcript: '' } })
    for (const delta of pieces) send('response.audio.transcript.delta', { ...first, delta })
    send('response.audio.transcript.done', { ...first, transcript: text })
    send('response.content_part.done', { ...first, part: spoken })
    const at = { ...first, content_index: 1 }
    const empty = { type: 'output_text', text: '', annotations: [], logprobs: [] }
    send('response.content_part.added', { ...at, part: empty })
    for (const delta of pieces) {
      send('response.output_text.delta', { ...at, delta, logprobs: [tokenOf(delta)] })
    }
    send('response.output_text.annotation.added', { ...at, annotation_index: 0, annotation })
    send('response.output_text.done', { ...at, text, logprobs: pieces.map(tokenOf) })
    send('response.content_part.done', { ...at, part: said })
    send('response.output_item.done', { output_index: 0, item: message([spoken, said]) })
    send('response.completed', { response: whole })
    response.end()
  }
}

describe('a response that is masked', () => {
  it('does not repeat the masked text in any part or event', async () => {
    responds()
    const body = await ask('a', '/v1/responses', false)
    expect(body).not.toMatch(leak)
    const whole = JSON.parse(body)
    const [spoken, said] = whole.output[0].content
    expect(said).toMatchObject({
      text: expected,
      logprobs: [],
      annotations: [{ title: 'By <EMAIL_ADDRESS>', url: 'https://e/', start_index: 0 }],
    })
    expect(spoken).toEqual({ type: 'output_audio', data: 'AAAA', transcript: expected })

    const streamed = await ask('a', '/v1/responses', true)
    expect(streamed).not.toMatch(leak)
    const events = eventsOf(streamed)
    const of = (type: string) => events.filter((event) => event.type === `response.${type}`)
    const joined = (type: string) =>
      of(type)
        .map(({ delta }) => delta)
        .join('')
    expect(joined('output_text.delta')).toBe(expected)
    expect(joined('audio.transcript.delta')).toBe(expected)
    for (const event of of('output_text.delta')) expect(event.logprobs).toEqual([])
    expect(of('output_text.done')).toMatchObject([{ text: expected, logprobs: [] }])
    expect(of('audio.transcript.done')).toMatchObject([{ transcript: expected }])
    const [added] = of('output_text.annotation.added')
    expect(added.annotation).toEqual(said.annotations[0])
    expect(of('content_part.done').map(({ part }) => part)).toEqual([spoken, said])
    expect(of('output_item.done').map(({ item }) => item)).toEqual(whole.output)
    expect(of('completed').map(({ response }) => response)).toEqual([whole])
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, at) => at))
  })

  it('can be read by an SDK whose stream type needs log probabilities', async () => {
    responds()
    const openai = new OpenAI({ baseURL: `${fleet.base('a')}/v1`, apiKey: 'k', maxRetries: 0 })
    const stream = openai.responses.stream({ model: 'm-1', input: 'Hello' })
    expect((await stream.finalResponse()).output_text).toBe(expected)
    const whole = await openai.responses.create({ model: 'm-1', input: 'Hello' })
    expect(whole.output_text).toBe(expected)
  })

  it('does not repeat the text that a webhook masks elsewhere', async () => {
    responds()
    for (const stream of [false, true]) {
      const body = await ask('hooked-a', '/v1/responses', stream)
      expect(body).not.toMatch(/123|6789|"token"/)
      expect(body).toContain('"title":""')
    }
  })
})
