/** Requests that only vendors with the same format serve: guards read them, limits and records see them. */
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { type Answer, json, openStream, sendEvent } from '../support/vendors/vendor.ts'

const ssn = '123-45-6789'
const key = { key: 'gateway-key' }
const request = [{ regex: { builtins: ['Ssn'] } }]
const ai = { promptGuard: { request } }
const both = { promptGuard: { request, response: [{ regex: { builtins: ['Email'] } }] } }
const types = ['Rerank', 'TextCompletions', 'Images', 'Speech', 'Moderations']
const formats = types.map((type) => ({ type }))

/** A server of any format that answers whatever it is asked. */
const fleet = useFleet(({ at }) => [
  reached('any', { custom: { formats }, ...at('a') }, { ai, auth: key }),
  reached('both', { custom: { formats }, ...at('a') }, { ai: both, auth: key }),
  reached('open', { custom: { formats }, ...at('a') }, { ai: undefined, auth: key }),
  reached('a', { vendorA: {}, ...at('a') }, { ai, auth: key }),
  reached('c', { vendorC: {}, ...at('c') }, { ai, auth: key }),
  reached('d', { vendorD: {}, ...at('d') }, { ai, auth: { key: 'AIzaKey' } }),
])
beforeEach(() => fleet.forget())

const sent = () => fleet.lastCall('a')
const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })

async function post(name: string, path: string, body: object) {
  const response = await fetch(`${fleet.base(name)}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, text: await response.text() }
}

const reranks: Answer = (_, response) =>
  json(response, 200, {
    model: 'm',
    results: [{ index: 0, relevance_score: 0.5 }],
    usage: { total_tokens: 7 },
  })

describe('a request that is passed on', () => {
  it('is a rerank, whose query and documents guards read', async () => {
    fleet.vendors.a.answer = reranks
    const documents = [`a ${ssn}`, { text: `b ${ssn}` }, { title: ssn, body: ssn }]
    const body = { model: 'm', query: `who is ${ssn}`, documents, top_n: 2 }
    for (const name of ['any', 'open']) {
      const { status, text } = await post(name, '/v1/rerank', body)
      expect([status, JSON.parse(text).results]).toEqual([
        200,
        [{ index: 0, relevance_score: 0.5 }],
      ])
      expect(sent()?.path).toBe('/v1/rerank')
      expect(sent()?.text.includes(ssn)).toBe(name === 'open')
    }
    await expect.poll(() => fleet.running.stdout).toMatch(/gen_ai.usage.input_tokens=7/)
  })

  it('is refused for documents that guards cannot read', async () => {
    const documents = [{ image: { url: 'https://x.test' } }]
    const { status, text } = await post('any', '/v1/rerank', { model: 'm', query: 'q', documents })
    expect([status, text]).toEqual([400, expect.stringContaining('only texts can be guarded')])
    const other = await post('any', '/v1/rerank', {
      model: 'm',
      query: 'q',
      documents: ['a'],
      messages: [],
    })
    expect([other.status, other.text]).toEqual([400, expect.stringContaining('messages')])
  })

  it('is an image by a prompt, whole and streamed, and may name no model', async () => {
    fleet.vendors.a.next.push((_, response) =>
      json(response, 200, {
        created: 1,
        data: [{ b64_json: 'AA==' }],
        usage: { input_tokens: 5, output_tokens: 6 },
      }),
    )
    const image = await openai('any').images.generate({ prompt: `draw ${ssn}` })
    expect(image.data).toEqual([{ b64_json: 'AA==' }])
    expect(sent()?.body).toEqual({ prompt: 'draw <SSN>' })
    fleet.vendors.a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, { type: 'image_generation.completed', b64_json: 'AA==' })
      response.end()
    })
    const stream = await openai('any').images.generate({ model: 'm', prompt: 'x', stream: true })
    const events = []
    for await (const event of stream) events.push(event)
    expect(events).toMatchObject([{ type: 'image_generation.completed' }])
  })

  it('is speech, whose sound is passed on', async () => {
    const sound = Buffer.from([0, 255, 1, 254])
    fleet.vendors.a.next.push((_, response) => {
      response.writeHead(200, { 'content-type': 'audio/mpeg' })
      response.end(sound)
    })
    const speech = await openai('any').audio.speech.create({
      ...{ model: 'm', voice: 'alloy', input: `say ${ssn}`, instructions: `like ${ssn}` },
    })
    expect(Buffer.from(await speech.arrayBuffer())).toEqual(sound)
    expect(sent()?.body).toMatchObject({ input: 'say <SSN>', instructions: 'like <SSN>' })
  })

  it('has no text that response guards have not read', async () => {
    fleet.vendors.a.next.push((_, response) =>
      json(response, 200, { data: [{ b64_json: 'AA==', revised_prompt: 'ann@example.com' }] }),
    )
    const image = await post('both', '/v1/images/generations', { prompt: 'x' })
    expect([image.status, JSON.parse(image.text)]).toEqual([200, { data: [{ b64_json: 'AA==' }] }])
    const spoken = { model: 'm', voice: 'alloy', input: 'x' }
    fleet.vendors.a.next.push((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      response.end('ann@example.com')
    })
    const speech = await post('both', '/v1/audio/speech', spoken)
    expect(speech.status).toBe(502)
    expect(speech.text).not.toContain('ann@example.com')
    fleet.vendors.a.next.push((_, response) => {
      response.writeHead(200, { 'content-type': 'audio/mpeg' })
      response.end('sound')
    })
    expect(await post('both', '/v1/audio/speech', spoken)).toEqual({ status: 200, text: 'sound' })
  })

  it('is a moderation of texts', async () => {
    fleet.vendors.a.next.push((_, response) =>
      json(response, 200, { id: 'x', model: 'm', results: [] }),
    )
    await openai('any').moderations.create({ input: [ssn, 'x'] })
    expect(sent()?.body).toEqual({ input: ['<SSN>', 'x'] })
  })

  it('is refused by vendors without its format, in the form of its API', async () => {
    for (const [name, path, body] of [
      ['c', '/v1/rerank', { model: 'm', query: 'q', documents: ['a'] }],
      ['d', '/v1/images/generations', { model: 'm', prompt: 'x' }],
      ['c', '/v1/audio/speech', { model: 'm', input: 'x' }],
      ['a', '/v1/rerank', { model: 'm', query: 'q', documents: ['a'] }],
    ] as const) {
      const { status, text } = await post(name, path, body)
      expect([path, status]).toEqual([path, 400])
      expect(JSON.parse(text).error.message).toContain('unsupported conversion: from ')
    }
  })

  it('is a count of tokens, by vendorA or by the gateway', async () => {
    fleet.vendors.a.next.push((_, response) =>
      json(response, 200, { object: 'response.input_tokens', input_tokens: 11 }),
    )
    const body = { model: 'm', input: `How many is ${ssn}?` }
    expect(await openai('a').responses.inputTokens.count(body)).toMatchObject({ input_tokens: 11 })
    expect(sent()?.path).toBe('/v1/responses/input_tokens')
    expect(sent()?.body.input).toBe('How many is <SSN>?')
    const counted = await openai('c').responses.inputTokens.count(body)
    expect(counted.object).toBe('response.input_tokens')
    expect(counted.input_tokens).toBeGreaterThan(5)
  })
})

describe('text completions', () => {
  it('reach servers that have them, whole and streamed', async () => {
    fleet.vendors.a.next.push((_, response) =>
      json(response, 200, { object: 'text_completion', choices: [{ index: 0, text: 'Hi' }] }),
    )
    const whole = await openai('any').completions.create({ model: 'm', prompt: `I am ${ssn}` })
    expect(whole.choices[0]?.text).toBe('Hi')
    expect(sent()).toMatchObject({ path: '/v1/completions', body: { prompt: 'I am <SSN>' } })
    fleet.vendors.a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, { choices: [{ index: 0, text: 'Hi', finish_reason: null }] })
      sendEvent(response, { choices: [{ index: 0, text: '', finish_reason: 'stop' }] })
      sendEvent(response, { choices: [], usage: { prompt_tokens: 3, completion_tokens: 1 } })
      sendEvent(response, '[DONE]')
      response.end()
    })
    const stream = await openai('any').completions.create({ model: 'm', prompt: 'x', stream: true })
    const texts = []
    for await (const chunk of stream) texts.push(chunk.choices[0]?.text)
    expect(texts).toEqual(['Hi', ''])
    expect(sent()?.body.stream_options).toEqual({ include_usage: true })
  })

  it('are translated for vendors of conversations', async () => {
    for (const [name, model, text] of [
      ['c', 'claude-sonnet-4-5', 'Hello from C'],
      ['d', 'gemini-2.5-flash', 'Hello from D'],
    ] as const) {
      const whole = await openai(name).completions.create({ model, prompt: 'x', max_tokens: 50 })
      expect(whole).toMatchObject({
        object: 'text_completion',
        choices: [{ text, finish_reason: 'stop' }],
      })
      const stream = await openai(name).completions.create({
        model,
        prompt: 'x',
        max_tokens: 50,
        stream: true,
      })
      let streamed = ''
      for await (const chunk of stream) streamed += chunk.choices[0]?.text ?? ''
      expect(streamed).toBe(text)
    }
    const { status, text } = await post('c', '/v1/completions', {
      model: 'm',
      prompt: 'x',
      suffix: 'y',
    })
    expect([status, text]).toEqual([400, expect.stringContaining('suffix')])
  })
})
