import Anthropic from '@anthropic-ai/sdk'
import { describe, expect, it } from 'vitest'
import type { SeriesAnswer } from '../../src/past/series/answer.ts'
import { sluice } from '../support/gateway.ts'
import { manifest } from '../support/manifests.ts'
import { acts } from '../support/vendors/guard-services.ts'
import { json, openStream, sendEvent } from '../support/vendors/vendor.ts'
import { calls, chunk, completes, completion } from '../support/vendors/vendor-a.ts'
import { eventually, waitFor } from '../support/wait-for.ts'
import {
  a,
  admin,
  base,
  c,
  hit,
  hook,
  lines,
  manifests,
  metrics,
  newAsk,
  openai,
  post,
  records,
  running,
} from './answer-cache-rig.ts'

describe('the cache of answers', () => {
  it('serves whole and streamed answers again, byte for byte, without asking the provider', async () => {
    for (const more of [
      {},
      { stream: true },
      { stream: true, stream_options: { include_usage: true } },
    ]) {
      const ask = newAsk(more)
      const first = await post('own', ask)
      expect(first).toMatchObject({ status: 200, cache: 'miss' })
      const asked = a.calls.length
      const again = await hit('own', { ...ask })
      expect(again.text).toBe(first.text)
      expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'))
      expect(again.headers.get('age')).toMatch(/^\d+$/)
      expect(a.calls.length).toBeGreaterThanOrEqual(asked)
      const before = a.calls.length
      await hit('own', ask)
      expect(a.calls).toHaveLength(before)
    }
  })

  it('finds the same request in another order of members, and no other one', async () => {
    const ask = newAsk({ temperature: 0.5, seed: 9007199254740993n.toString() })
    await post('own', ask)
    const { model, messages, ...rest } = ask
    await hit('own', { messages, ...rest, model })
    const tool = { type: 'function', function: { name: 'get', parameters: { type: 'object' } } }
    const others = [
      { ...ask, model: 'gpt-4o-mini' },
      { ...ask, temperature: 0.6 },
      { ...ask, stream: true },
      { ...ask, tools: [tool] },
      { ...ask, tools: [tool], tool_choice: 'none' },
      { ...ask, response_format: { type: 'json_object' } },
      { ...ask, messages: [{ role: 'system', content: 'Be brief.' }, ...messages] },
      { ...ask, messages: [{ ...messages[0], content: `${messages[0]?.content} ` }] },
    ]
    for (const other of others) expect((await post('own', other)).cache).toBe('miss')
    const headers = { 'openai-organization': 'other' }
    expect((await post('own', ask, headers)).cache).toBe('miss')
  })

  it('keeps the answers of clients apart, also where the provider alone knows them', async () => {
    const ask = newAsk()
    await post('own', ask)
    await hit('own', ask)
    expect((await post('own', ask, { authorization: 'Bearer key-of-bob' })).cache).toBe('miss')
    expect((await post('own', ask, { authorization: '' })).cache).toBe('bypass')
    await post('shared', ask)
    await hit('shared', ask, { authorization: 'Bearer key-of-bob' })
    // A key that the gateway does not know is the principal where the provider gets it.
    const passed = newAsk()
    const own = { authorization: 'Bearer sk-of-ann' }
    await post('passed', passed, own)
    await hit('passed', passed, own)
    const other = { authorization: 'Bearer sk-of-bob' }
    expect((await post('passed', passed, other)).cache).toBe('miss')
  })

  it('obeys Cache-Control and the opt-out header', async () => {
    const ask = newAsk()
    const send = (headers: Readonly<Record<string, string>>) => post('own', ask, headers)
    expect(await send({ 'cache-control': 'only-if-cached' })).toMatchObject({ status: 504 })
    expect(a.calls).toHaveLength(0)
    for (const value of ['off', 'off, exact', 'off;q=1', '"off"', 'no', 'exact, off', '']) {
      expect((await send({ 'x-sluice-cache': value })).cache, value).toBe('bypass')
    }
    expect(a.calls.at(-1)?.headers).not.toHaveProperty('x-sluice-cache')
    expect((await send({ 'cache-control': 'no-store' })).cache).toBe('bypass')
    expect((await send({})).cache).toBe('miss')
    await hit('own', ask)
    await hit('own', ask, { 'cache-control': 'only-if-cached, max-age=60' })
    await hit('own', ask, { 'cache-control': 'min-fresh=1' })
    const stricter = ['max-age=0', 'max-age=0, max-age=60', 'min-fresh=301', 'min-fresh=soon']
    for (const value of stricter) {
      expect((await send({ 'cache-control': value })).cache, value).toBe('miss')
    }
    expect((await send({ pragma: 'no-cache' })).cache).toBe('miss')
    await hit('own', ask, { pragma: 'no-cache', 'cache-control': 'max-age=60' })
    a.answer = completes('Newer')
    expect((await send({ 'cache-control': 'no-cache' })).cache).toBe('miss')
    await eventually(async () => expect((await hit('own', ask)).text).toContain('Newer'))
    const forbidden = newAsk()
    a.next.push((call, response) => {
      response.setHeader('cache-control', 'no-store')
      completes('Once')(call, response)
    })
    await post('own', forbidden)
    expect((await post('own', forbidden)).cache).toBe('miss')
    const brief = newAsk()
    await post('short', brief)
    await waitFor('the end of the time to live', async () => {
      const asked = a.calls.length
      await post('short', brief, { 'cache-control': 'no-store' })
      await post('short', brief)
      return a.calls.length === asked + 2
    })
  })

  it('stores no error, and no answer that was cut, filtered or refused', async () => {
    const whole = completion('gpt-4o', 'Half') as { choices: { message: object }[] }
    const [choice] = whole.choices
    const ends = ['length', 'content_filter'].map((finish_reason) => ({ ...choice, finish_reason }))
    const refused = { ...choice, message: { ...choice?.message, refusal: 'No.' } }
    for (const bad of [...ends, refused]) {
      const ask = newAsk()
      a.next.push((_, response) => json(response, 200, { ...whole, choices: [bad] }))
      await post('own', ask)
      expect((await post('own', ask)).cache).toBe('miss')
    }
    const failed = newAsk()
    a.next.push((_, response) => json(response, 500, { error: { message: 'oh no' } }))
    expect((await post('own', failed)).status).toBe(500)
    expect((await post('own', failed)).cache).toBe('miss')
    const streams: ((write: (data: unknown) => void) => void)[] = [
      // An end of the stream without an end of the answer.
      (write) => {
        write(chunk('gpt-4o', { content: 'Half' }))
        write('[DONE]')
      },
      // Cut before the end, and an error after it.
      (write) => write(chunk('gpt-4o', { content: 'Half' })),
      (write) => {
        write(chunk('gpt-4o', { content: 'Half' }, 'stop'))
        write({ error: { message: 'late' } })
        write('[DONE]')
      },
      (write) => {
        write(chunk('gpt-4o', { content: 'Half' }, 'length'))
        write('[DONE]')
      },
    ]
    for (const stream of streams) {
      const ask = newAsk({ stream: true })
      a.next.push((_, response) => {
        openStream(response)
        stream((data) => sendEvent(response, data))
        response.end()
      })
      await post('own', ask)
      expect((await post('own', ask)).cache).toBe('miss')
    }
  })

  it('does not store what refers to other content, or what the provider does besides', async () => {
    const url = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
    const inline = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
    const bodies = [
      newAsk({ messages: [{ role: 'user', content: [url] }] }),
      newAsk({ web_search_options: {} }),
    ]
    for (const body of bodies) expect((await post('own', body)).cache).toBe('bypass')
    const search = { ...newAsk(), input: 'Hi', messages: undefined, store: false }
    const responses = (more: object) => post('own', { ...search, ...more }, {}, '/v1/responses')
    expect((await responses({ tools: [{ type: 'web_search' }] })).cache).toBe('bypass')
    expect((await responses({ store: true })).cache).toBe('bypass')
    expect((await responses({})).cache).toBe('miss')
    await hit('own', { ...search }, {}, '/v1/responses')
    const shown = newAsk({ messages: [{ role: 'user', content: [inline] }] })
    await post('own', shown)
    await hit('own', shown)
    const vectors = { model: 'text-embedding-3-small', input: `text ${Math.random()}` }
    await post('own', vectors, {}, '/v1/embeddings')
    await hit('own', vectors, {}, '/v1/embeddings')
  })

  it('serves streams of Responses again, and streams that begin with a role alone', async () => {
    const asked = { ...newAsk(), input: `Hi ${Math.random()}`, messages: undefined }
    const ask = { ...asked, stream: true, store: false }
    const first = await post('own', ask, {}, '/v1/responses')
    expect(first.text).toContain('response.completed')
    expect((await hit('own', ask, {}, '/v1/responses')).text).toBe(first.text)
    const chat = newAsk({ stream: true })
    a.next.push((_, response) => {
      openStream(response)
      const deltas = [{ role: 'assistant' }, { reasoning_content: 'Hm.' }, { content: 'Hello' }]
      for (const delta of deltas) sendEvent(response, chunk('gpt-4o', delta))
      sendEvent(response, chunk('gpt-4o', {}, 'stop'))
      sendEvent(response, '[DONE]')
      response.end()
    })
    await post('own', chat)
    const { text } = await hit('own', chat)
    for (const part of ['assistant', 'Hm.', 'Hello', '[DONE]']) expect(text).toContain(part)
  })

  it('serves translated answers and calls of tools to stock SDKs', async () => {
    const client = new Anthropic({ baseURL: base('own'), apiKey: 'key-of-ann', maxRetries: 0 })
    const input = { city: 'Oslo' }
    a.answer = calls({ id: 'call_1', name: 'weather', input })
    const ask = {
      model: 'gpt-4o',
      max_tokens: 50,
      messages: [{ role: 'user' as const, content: `Weather ${Math.random()}?` }],
      tools: [{ name: 'weather', input_schema: { type: 'object' as const } }],
    }
    const first = await client.messages.stream(ask).finalMessage()
    expect(first.content).toMatchObject([{ type: 'tool_use', name: 'weather', input }])
    await waitFor('a hit', async () => {
      const asked = a.calls.length
      expect(await client.messages.stream(ask).finalMessage()).toEqual(first)
      return a.calls.length === asked
    })
    const text = { ...newAsk(), stream: true as const }
    await hit('translated', text)
    const stream = await openai('translated').chat.completions.create(text)
    let said = ''
    for await (const { choices } of stream) said += choices[0]?.delta.content ?? ''
    expect(said).toBe('Hello from C')
    expect(c.calls.length).toBeGreaterThan(0)
  })
})

describe('hits of the cache of answers', () => {
  it('cost nothing, count for no limit of tokens, and are recorded', async () => {
    const ask = newAsk()
    // The limit has 20 tokens, and an answer uses 18.
    await post('limited', ask)
    for (let count = 0; count < 5; count++) await hit('limited', ask)
    const line = await waitFor('the record', () =>
      lines().find(
        (one) => one['model.cache'] === 'hit' && `${one['http.path']}`.includes('limited'),
      ),
    )
    expect(line).toMatchObject({ reason: 'CacheHit', 'gen_ai.response.model': 'gpt-4o' })
    expect(line).toHaveProperty('model.cache.saved')
    for (const name of ['cost.total', 'cost.status', 'gen_ai.usage.input_tokens']) {
      expect(line).not.toHaveProperty(name)
    }
    const text = await eventually(async () => {
      const found = await metrics()
      expect(found).toMatch(
        /sluice_model_cache_requests_total\{result="hit",.*route="default\/limited".*\} [5-9]/,
      )
      return found
    })
    expect(text).toMatch(
      /sluice_model_cache_requests_total\{result="stored",.*route="default\/limited"/,
    )
    expect(text).toMatch(/sluice_model_cache_saved_usd_total\{.*route="default\/limited"/)
  })

  it('are shown with what they saved by spend, top and explain, and are in no sum of costs', async () => {
    const ask = newAsk()
    await post('brief', ask)
    await hit('brief', ask)
    await hit('brief', ask)
    const csv = await eventually(async () => {
      const { stdout } = await sluice(
        ...['spend', '--record-dir', records, '--by', 'route,status', '-o', 'csv'],
      )
      expect(stdout).toContain('default/brief,exact,1,')
      expect(stdout).toMatch(/default\/brief,hit,0,.*,2,/)
      return stdout
    })
    const [, cost] = /default\/brief,exact,(?:\d+,){5}([\d.]+),/.exec(csv) ?? []
    const saved = `${(Number(cost) * 2).toFixed(12)}`.replace(/0+$/, '')
    expect(csv).toContain(`default/brief,hit,0,0,0,0,0,0,0,0,0,2,${saved}\n`)
    const sums = await eventually(async () => {
      const { stdout } = await sluice('top', '--admin', admin, '--json', '--since', '1h')
      const groups = JSON.parse(stdout).groups as SeriesAnswer[]
      const routes = groups.find(({ by }) => by === 'route')
      const found = routes?.series.find(({ name }) => name === 'default/brief')
      expect(found?.sums.hits).toBe(2)
      return found?.sums
    })
    expect(sums?.requests).toBe(3)
    expect(sums?.saved).toBeCloseTo(Number(saved), 9)
    expect(sums?.cost).toBeCloseTo(Number(cost), 9)
    const { stdout } = await sluice('decisions', '--record-dir', records, '-o', 'json')
    const lines = stdout.split('\n').slice(0, -1)
    const { id } = lines
      .map((line) => JSON.parse(line))
      .findLast(({ details }) => details['model.cache'] === 'hit')
    const told = await sluice('explain', 'request', '--id', id, '--record-dir', records)
    expect(told.stdout).toMatch(/cost +0 USD +\(a stored answer that had cost 0\.\d+ USD\)/)
  })

  it('release what an earlier attempt has reserved in a budget', async () => {
    const ask = newAsk({ max_tokens: 1_000 })
    const held = Promise.withResolvers<void>()
    a.next.push((_call, response) => {
      void held.promise.then(() => json(response, 500, { error: { message: 'broken' } }))
    })
    const retried = post('retried', ask)
    await waitFor('the first attempt', () => a.calls[0])
    // Another request stores the answer before the first attempt fails; it uses 18 tokens.
    await post('retried', ask, { 'cache-control': 'no-cache' })
    await hit('retried', ask)
    held.resolve()
    expect((await retried).cache).toBe('hit')
    // The budget has 3,000 tokens: this fits only if nothing else was charged. The other worker may return its share later.
    await eventually(async () => {
      expect((await post('retried', newAsk({ max_tokens: 2_200 }))).status).toBe(200)
    })
  })

  it('are not the only requests that limits judge: they judge the retry of a request as well', async () => {
    const held = Promise.withResolvers<void>()
    a.next.push((_call, response) => {
      void held.promise.then(() => json(response, 500, { error: { message: 'broken' } }))
    })
    const retried = post('relimited', newAsk())
    await waitFor('the first attempt', () => a.calls[0])
    // Meanwhile, another request uses all tokens of the model.
    await waitFor('the limit', async () => (await post('relimited', newAsk())).status === 429)
    held.resolve()
    expect((await retried).status).toBe(429)
  })

  it('are judged by services again, and are not served after a guard has changed', async () => {
    for (const more of [{}, { stream: true }]) {
      const ask = newAsk(more)
      await post('judged', ask)
      await hit('judged', ask)
      hook.answer = acts({ body: 'not any more', status_code: 451, reason: 'changed' })
      expect(await post('judged', ask)).toMatchObject({ status: 451, text: 'not any more' })
      hook.answer = acts({ reason: 'fine' })
    }
    a.answer = completes('my token-', '1234')
    const ask = newAsk()
    expect((await post('masked', ask)).text).toContain('<masked>')
    expect((await hit('masked', ask)).text).not.toContain('1234')
    await running.write('all.yaml', manifest(...manifests('to\\w+-\\d{4}')))
    await waitFor('the new guard', async () => (await post('masked', ask)).cache === 'miss')
  })
})
