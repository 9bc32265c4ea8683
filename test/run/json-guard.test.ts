import { brotliCompressSync, gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, it } from 'vitest'
import { json, post, receive, running, sentBody, upstream } from './json-guard-rig.ts'

beforeEach(() => upstream.forget())

const said = (text: string) => JSON.stringify({ messages: [{ text }] })
const mask = '<EMAIL_ADDRESS>'

describe('guards of JSON requests [Traffic.jsonGuard]', () => {
  it('[JSONPathGuard.paths] mask texts at their paths, and leave all other bytes', async () => {
    const text =
      ' {"messages" : [ {"text":"to \\u0061nn\\u0040example.com"}, {"text":"ok","id":12345678901234567890} ],\n "to":"bob@example.com", "x":{"note":["eve@example.com", 1e400]} }'
    await post('request', text)
    expect(sentBody()).toBe(
      text.replace('to \\u0061nn\\u0040example.com', `to ${mask}`).replace('eve@example.com', mask),
    )
  })

  it.each([
    ['a repeated name', '{"note":"a@b.com","note":"c@d.com","note":"fine"}', [mask, mask, 'fine']],
    ['an escaped name', '{"n\\u006fte":"a@b.com"}', [mask]],
    ['a name in another case', '{"Note":"a@b.com"}', [mask]],
    ['a byte order mark', '\ufeff{"note":"a@b.com"}', [mask]],
    ['names of members', '{"note":{"a@b.com":1}}', [mask]],
    ['deep values', `${'{"a":'.repeat(900)}{"note":"a@b.com"}${'}'.repeat(900)}`, [mask]],
  ])('find texts despite %s', async (_, text, expected) => {
    expect((await post('request', text)).status).toBe(200)
    expect(sentBody()).not.toContain('@')
    for (const one of expected) expect(sentBody()).toContain(`"${one}"`)
  })

  it.each([
    ['text', 'not JSON', json, 400],
    ['two documents', '{}{}', json, 400],
    ['bytes that are not UTF-8', Buffer.from('{"note":"\xe9"}', 'latin1'), json, 400],
    ['UTF-16', Buffer.from('{"note":"a@b.com"}', 'utf16le'), json, 400],
    ['another charset', '{}', { 'content-type': 'application/json; charset=utf-7' }, 415],
    ['values in too many others', '['.repeat(2_000) + ']'.repeat(2_000), json, 400],
    ['another type', 'note=a@b.com', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['several types', '{}', { 'content-type': ['application/json', 'text/plain'] }, 415],
    ['an unknown coding', '{}', { ...json, 'content-encoding': 'secret' }, 415],
    ['a damaged coding', '{}', { ...json, 'content-encoding': 'gzip' }, 400],
    ['more bytes than the limit', said('a'.repeat(3_000_000)), json, 413],
    [
      'more decoded bytes',
      gzipSync(said('a'.repeat(3_000_000))),
      { ...json, 'content-encoding': 'gzip' },
      413,
    ],
  ])('refuse %s', async (_, body, headers, status) => {
    const response = await post('request', body, headers)
    expect(response.status).toBe(status)
    expect(response.body).toMatch(/^the request body cannot be guarded: /)
    expect(upstream.received).toEqual([])
  })

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])('send a body with the coding %s decoded', async (coding, encode) => {
    for (const text of [said('a@b.com'), said('fine')]) {
      await post('request', encode(text), { ...json, 'content-encoding': coding, digest: 'old' })
      expect(sentBody()).toBe(text.replace('a@b.com', mask))
      expect(upstream.received.at(-1)?.headers).not.toHaveProperty('content-encoding')
      expect(upstream.received.at(-1)?.headers).not.toHaveProperty('digest')
    }
  })

  it('read JSON without a type, types that end with +json, NDJSON, and empty bodies', async () => {
    await post('request', '{"note":"a@b.com"}', {})
    expect(sentBody()).toBe(`{"note":"${mask}"}`)
    await post('request', '{"note":"a@b.com"}', { 'content-type': 'application/ld+json' })
    expect(sentBody()).toBe(`{"note":"${mask}"}`)
    await post('request', '{"note":"a@b.com"}\n{"x":"a@b.com"}\n', {
      'content-type': 'application/x-ndjson',
    })
    expect(sentBody()).toBe(`{"note":"${mask}"}\n{"x":"a@b.com"}\n`)
    const empty = { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' }
    expect((await post('request', '', empty)).status).toBe(200)
  })

  it('run in order, each on its own paths', async () => {
    await post('several', '{"a":"one two","b":"one two"}')
    expect(sentBody()).toBe('{"a":"<masked> <masked>","b":"one <masked>"}')
  })

  it('refuse what matches with action Reject', async () => {
    const response = await post('rejecting', said('a@b.com'))
    expect([response.status, response.headers['x-sluice-guard']]).toEqual([422, 'pii'])
    expect(upstream.received).toEqual([])
    expect((await post('rejecting', '{"other":"a@b.com"}')).status).toBe(200)
  })

  it('ask services, whose outage refuses the request unless failureMode is FailOpen', async () => {
    await post('asking', said('a secret'))
    expect(sentBody()).toBe(said('a ######'))
    expect(await post('asking', said('bad'))).toMatchObject({
      status: 451,
      body: 'refused by the judge',
    })
    expect((await post('asking', said('broken'))).status).toBe(503)
    await post('open', said('broken'))
    expect(sentBody()).toBe(said('broken'))
  })

  it('refuse tunnels', async () => {
    const upgrade = { connection: 'upgrade', upgrade: 'websocket' }
    expect((await post('response', '', upgrade)).status).toBe(403)
    expect((await post('request', '', upgrade)).status).toBe(403)
  })

  it('change nothing with action Audit, even if they cannot read the body', async () => {
    for (const text of [said('a@b.com'), 'not JSON']) {
      expect((await receive('audited', 'application/json', text)).body).toBe(text)
      expect(sentBody()).toBe(text)
    }
    const events = 'data: {"note":"a@b.com"}\n\ndata: nonsense\n\ndata: {"note":"a@b.com"}\n\n'
    const { body, headers } = await receive('audited', 'text/event-stream', events)
    expect([body, headers['content-digest']]).toEqual([events, 'sha-256=:b2xk:'])
  })

  it('[JSONGuard.otherTypes] let other types pass with Pass', async () => {
    const form = { 'content-type': 'text/plain', 'answer-type': 'text/html' }
    const { status, body } = await post('passing', 'a@b.com', form)
    expect([status, body, sentBody()]).toEqual([200, 'a@b.com', 'a@b.com'])
    expect((await post('passing', 'not JSON')).status).toBe(400)
  })

  it.each([
    ['broken', 'request[0].paths[1]: filters are not supported, at character 9'],
    ['unguarded', 'request[0].regex.matches[0]: '],
  ])('refuse all requests if the policy is invalid: %s', async (name, problem) => {
    expect((await post(name, '{}')).status).toBe(500)
    const { message } = await running.condition('GatewayPolicy', name, 'Accepted', 'False')
    expect(message).toContain(`jsonGuard.${problem}`)
  })
})

describe('guards of JSON responses', () => {
  const type = 'application/json; charset=utf-8'

  it.each(['', 'gzip', 'br'])(
    'mask texts of whole responses, with the coding "%s"',
    async (coding) => {
      const { status, body, headers } = await receive('response', type, said('a@b.com'), {
        ...(coding && { 'answer-coding': coding }),
      })
      expect([status, body]).toEqual([200, said(mask)])
      expect(headers).not.toHaveProperty('content-encoding')
      expect(headers).not.toHaveProperty('content-digest')
    },
  )

  it.each([1, 5, 64])('mask streams in pieces of %i bytes', async (cut) => {
    const pieces = { 'answer-cut': `${cut}` }
    const events =
      'id: 1\ndata: {"note":"a\\u0040b.com"}\n\n: a@b.com\n\ndata: {"x":\ndata: 1}\n\ndata: [DONE]\n\n'
    const expected = events.replace('a\\u0040b.com', mask)
    expect((await receive('response', 'text/event-stream', events, pieces)).body).toBe(expected)
    const lines = '{"note":"a@b.com"}\n{"x":"a@b.com"}\n'
    const masked = lines.replace('a@b.com', mask)
    expect((await receive('response', 'application/x-ndjson', lines, pieces)).body).toBe(masked)
  })

  it('decode compressed streams as a whole', async () => {
    const coded = { 'answer-coding': 'gzip' }
    const lines = '{"note":"a@b.com"}\n'
    const { body } = await receive('response', 'application/x-ndjson', lines, coded)
    expect(body).toBe(lines.replace('a@b.com', mask))
  })

  it.each([
    ['another type', 'text/html', 'a@b.com', {}],
    ['text', type, 'a@b.com', {}],
    ['a part of a document', type, '"a@b.com"', { 'answer-status': '206' }],
    ['more bytes than the limit', type, said('a'.repeat(3_000_000)), {}],
  ])('refuse %s with 502, and quote nothing', async (_, answerType, body, more) => {
    // The route `response` has no guards of requests.
    const response = await receive('response', answerType, body, more)
    expect([response.status, response.body]).toEqual([502, 'the response cannot be guarded'])
  })

  it('cut a stream at a part that they cannot read', async () => {
    const events = 'data: {"note":"1"}\n\ndata: a@b.com\n\ndata: {"note":"2"}\n\n'
    const pieces = { 'answer-cut': '20' }
    // If nothing was sent yet, the client gets a 502.
    const { body } = await receive('response', 'text/event-stream', events, pieces).catch(() => ({
      body: 'cut',
    }))
    expect(['cut', 'the response cannot be guarded']).toContain(body)
  })

  it('remove Range from requests', async () => {
    await post('response', '{}', { ...json, range: 'bytes=0-5', 'answer-type': type })
    expect(upstream.received.at(-1)?.headers).not.toHaveProperty('range')
  })

  it.each([type, 'application/x-ndjson', 'text/event-stream'])(
    'of type %s are withheld with action Reject, before any byte was sent',
    async (answerType) => {
      const document = answerType === 'text/event-stream' ? 'data: {"x":1}\n\n' : '{"x":1}\n'
      expect((await receive('withholding', answerType, document)).body).toBe(document)
      const found = document.replace('"x":1', '"note":"a@b.com"')
      const response = await receive('withholding', answerType, found)
      expect([response.status, response.body]).toEqual([403, 'withheld'])
    },
  )

  it('ask services about whole responses and streams', async () => {
    expect((await receive('answering', type, said('a secret'))).body).toBe(said('a ######'))
    const events = 'data: {"note":"secret"}\n\ndata: {"note":"fine"}\n\n'
    const { body } = await receive('answering', 'text/event-stream', events)
    expect(body).toBe(events.replace('secret', '######'))
    expect(await receive('answering', type, said('bad'))).toMatchObject({ status: 451 })
    expect((await receive('answering', type, said('broken'))).status).toBe(503)
  })
})
