/** What goes wrong between client, gateway and vendor, and what is refused before anything is served. */
import type { ServerResponse } from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { openStream, sendEvent } from '../support/vendors/vendor.ts'
import { chunk, completion } from '../support/vendors/vendor-a.ts'
import { sayPiece, startMessage } from '../support/vendors/vendor-c.ts'
import { waitFor } from '../support/wait-for.ts'
import { a, anthropic, ask, askC, base, c, hook, openai } from './model-errors-rig.ts'

const formats = {
  '/v1/chat/completions': ask,
  '/v1/messages': askC,
  '/v1/responses': { model: 'm-1', input: 'x' },
}
const post = (name: string, path: keyof typeof formats, more: object = {}, init: object = {}) =>
  fetch(`${base(name)}${path}`, {
    method: 'POST',
    body: JSON.stringify({ ...formats[path], ...more }),
    ...init,
  })

/** What the gateway says in each format. */
function errorOf(path: keyof typeof formats, message: unknown) {
  return path === '/v1/messages'
    ? { type: 'error', error: { type: expect.any(String), message } }
    : { error: { type: expect.any(String), message } }
}

const paths = Object.keys(formats) as (keyof typeof formats)[]

async function collect<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of stream) items.push(item)
  return items
}

const sends =
  (type: string, body: string | Uint8Array, headers: Record<string, string> = {}, status = 200) =>
  (_: unknown, response: ServerResponse): void => {
    response.writeHead(status, { 'content-type': type, ...headers })
    response.end(body)
  }

describe('a redirect of the vendor', () => {
  it('is an error without its location, so that no SDK follows it with a key', async () => {
    const to = { location: 'http://127.0.0.1:9/v1/chat/completions' }
    for (const path of paths) {
      for (const [stream, status] of [
        [false, 302],
        [true, 307],
      ] as const) {
        a.next.push(sends('text/plain', 'moved', to, status))
        const response = await post('a', path, { stream }, { redirect: 'manual' })
        expect([response.status, response.headers.get('location')]).toEqual([502, null])
        expect(await response.json()).toMatchObject(
          errorOf(path, expect.stringContaining(`answered ${status}, a redirect`)),
        )
      }
    }
  })
})

describe('errors of the gateway', () => {
  it('come in the format of the client if no provider can be reached', async () => {
    for (const path of paths) {
      const gone = await post('gone', path)
      expect(gone.status).toBe(503)
      expect(gone.headers.get('content-type')).toBe('application/json')
      expect(await gone.json()).toMatchObject(errorOf(path, expect.stringContaining('connection')))
    }
    await expect(anthropic('gone').messages.create(askC)).rejects.toBeInstanceOf(
      Anthropic.InternalServerError,
    )
  })

  it('come in the format of the client if the vendor times out', async () => {
    a.answer = () => {}
    for (const path of paths) {
      const slow = await post('slow', path)
      expect(slow.status).toBe(504)
      expect(await slow.json()).toMatchObject(errorOf(path, expect.stringContaining('timeout')))
    }
  })

  it('come in the format of the client if its token limit is exceeded', async () => {
    await openai('limited').chat.completions.create(ask)
    await waitFor('the limit', async () => (await post('limited', '/v1/messages')).status === 429)
    for (const path of paths) {
      const spent = await post('limited', path)
      expect(spent.status).toBe(429)
      expect(spent.headers.get('retry-after')).toMatch(/^\d+$/)
      expect(await spent.json()).toMatchObject(
        errorOf(
          path,
          expect.stringMatching(
            /^rate limit exceeded: \d+ tokens per (second|minute|hour) are used up; the next request is allowed in \d+ (s|min|h|d)( \d+ (s|min|h))?$/,
          ),
        ),
      )
      expect(spent.headers.get('x-should-retry')).toBe('false')
    }
    await expect(openai('limited').chat.completions.create(ask)).rejects.toBeInstanceOf(
      OpenAI.RateLimitError,
    )
  })
})

describe('errors of the vendor', () => {
  it('keep their status, whatever the format of their body', async () => {
    for (const path of paths) {
      for (const [name, vendor] of [
        ['a', a],
        ['c', c],
      ] as const) {
        vendor.next.push(sends('text/html', '<h1>Bad day</h1>', {}, 403))
        const html = await post(name, path)
        expect(html.status).toBe(403)
        expect(await html.json()).toMatchObject(errorOf(path, expect.stringContaining('Bad day')))
        vendor.next.push(sends('text/plain', '', {}, 418))
        const empty = await post(name, path)
        expect(empty.status).toBe(418)
        expect(await empty.json()).toMatchObject(errorOf(path, expect.any(String)))
      }
    }
  })

  it('replace 2xx answers with unusable bodies', async () => {
    const bad = ['', 'no JSON', '[1]', '"text"', '{"half":', '<html></html>']
    for (const path of paths) {
      for (const body of bad) {
        for (const [name, vendor] of [
          ['a', a],
          ['c', c],
        ] as const) {
          vendor.next.push(sends('application/json', body))
          const answer = await post(name, path)
          expect(answer.status).toBe(502)
          expect(await answer.json()).toMatchObject(errorOf(path, expect.any(String)))
        }
      }
    }
  })

  it('replace answers that exceed the size limit', async () => {
    const long = Buffer.alloc(33 * 1024 * 1024, 'x')
    a.next.push(sends('application/json', long))
    const whole = await post('a', '/v1/chat/completions')
    expect(whole.status).toBe(502)
    expect(await whole.json()).toMatchObject(
      errorOf('/v1/chat/completions', expect.stringContaining('too large')),
    )
    // A small answer that becomes a large one.
    a.next.push(sends('application/json', gzipSync(long), { 'content-encoding': 'gzip' }))
    expect((await post('a', '/v1/messages')).status).toBe(502)
    a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, chunk('m', { content: 'Hel' }))
      response.write(`data: ${'x'.repeat(33 * 1024 * 1024)}`)
    })
    const stream = anthropic('a').messages.stream(askC)
    await expect(stream.finalMessage()).rejects.toThrow(/too large/)
    await waitFor('the vendor to be left', () => a.aborted >= 1)
  })

  it('end a stream that is cut off, as an event of its format', async () => {
    c.next.push((_, response) => {
      startMessage('m', response)
      sayPiece('Hel', response)
      response.write('event: conte', () => response.destroy())
    })
    await expect(anthropic('c').messages.stream(askC).finalMessage()).rejects.toThrow(/cut off/)
    for (const name of ['a', 'c']) {
      a.next.push((_, response) => {
        openStream(response)
        sendEvent(
          response,
          { type: 'response.output_text.delta', sequence_number: 0, delta: 'x' },
          'response.output_text.delta',
        )
        response.write('data: {', () => response.destroy())
      })
      c.next.push((_, response) => {
        startMessage('m', response)
        sayPiece('Hel', response)
        response.destroy()
      })
      const text = await (await post(name, '/v1/responses', { stream: true })).text()
      const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data ?? '')
      expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({
        type: expect.stringMatching(/error|failed/),
      })
      expect(events.at(-1)).toContain('cut off')
    }
  })

  it("in a stream are translated to the client's format", async () => {
    c.next.push((_, response) => {
      startMessage('m', response)
      const error = { type: 'overloaded_error', message: 'too much to do' }
      sendEvent(response, { type: 'error', error }, 'error')
      response.end()
    })
    const stream = await openai('c').chat.completions.create({ ...ask, stream: true })
    await expect(collect(stream)).rejects.toThrow(/too much to do/)
  })
})

describe('answers that are compressed', () => {
  const codings = {
    gzip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
  }
  const whole = JSON.stringify(completion('m-1', 'Hello from A'))
  const events = [
    chunk('m-1', { role: 'assistant', content: 'Hello ' }),
    chunk('m-1', { content: 'from A' }, 'stop'),
  ]
  const stream = `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`

  it('are read, whole and as streams, natively and translated', async () => {
    for (const [coding, compress] of Object.entries(codings)) {
      const headers = { 'content-encoding': coding }
      a.answer = (call, response) =>
        call.body.stream === true
          ? sends('text/event-stream', compress(stream), headers)(call, response)
          : sends('application/json', compress(whole), headers)(call, response)
      const native = await openai('a').chat.completions.create(ask)
      expect(native.choices[0]?.message.content, coding).toBe('Hello from A')
      const message = await anthropic('a').messages.create(askC)
      expect(message.content, coding).toEqual([{ type: 'text', text: 'Hello from A' }])
      const streamed = await openai('a').chat.completions.stream(ask).finalContent()
      expect(streamed, coding).toBe('Hello from A')
      expect(await anthropic('a').messages.stream(askC).finalText(), coding).toBe('Hello from A')
    }
  })

  it('with an unknown coding, or damaged, are errors', async () => {
    a.next.push(sends('application/json', whole, { 'content-encoding': 'sausage' }))
    expect((await post('a', '/v1/chat/completions')).status).toBe(502)
    const half = gzipSync(whole).subarray(0, 20)
    a.next.push(sends('application/json', half, { 'content-encoding': 'gzip' }))
    expect((await post('a', '/v1/messages')).status).toBe(502)
  })

  it('can be error answers of the vendor too', async () => {
    const error = gzipSync(JSON.stringify({ error: { message: 'no such model', type: 'x' } }))
    a.next.push(sends('application/json', error, { 'content-encoding': 'gzip' }, 404))
    await expect(anthropic('a').messages.create(askC)).rejects.toThrow(/no such model/)
  })
})

describe('a client that disconnects', () => {
  it("cancels the vendor's work, whether the answer is streamed, awaited whole or held", async () => {
    for (const [name, stream] of [
      ['a', false],
      ['a', true],
      ['held', true],
    ] as const) {
      a.aborted = 0
      a.calls.length = 0
      a.next.push((_, response) => {
        if (!stream) return
        openStream(response)
        sendEvent(response, chunk('m', { content: 'Hel' }))
      })
      const leaving = new AbortController()
      const pending = post(name, '/v1/chat/completions', { stream }, { signal: leaving.signal })
      await waitFor('the call', () => a.calls.length === 1)
      leaving.abort()
      await expect(pending.then((answer) => answer.text())).rejects.toThrow(/abort/)
      await waitFor('the vendor to be left', () => a.aborted === 1)
    }
    expect(hook.calls).toEqual([])
  })
})
