import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { fieldsOf, type Processor, passAll, setting, streamed } from '../support/ext-proc-server.ts'
import { sluice } from '../support/gateway.ts'
import { sign } from '../support/identity-provider.ts'
import { hostOf } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  ask,
  early,
  except,
  type Fields,
  failed,
  given,
  issuer,
  key,
  overHttp2,
  parts,
  port,
  post,
  received,
  running,
  secure,
  server,
  upstream,
} from './ext-proc-rig.ts'

describe('extProc [Traffic.extProc]', () => {
  it('[ExtProc.backendRef] sends headers, bodies and trailers both ways', async () => {
    const response = await post('plain', 'hello')
    expect(response).toMatchObject({ status: 200 })
    expect(JSON.parse(response.body)).toMatchObject({ method: 'POST', body: 'hello' })
    expect(parts()).toEqual(['requestHeaders', 'requestBody', 'responseHeaders', 'responseBody'])
    const [first, second, third] = server.streams.at(-1)?.messages ?? []
    expect(first?.protocolConfig).toMatchObject({ requestBodyMode: 4, responseBodyMode: 4 })
    expect(second?.protocolConfig).toBeUndefined()
    if (first?.request.case !== 'requestHeaders' || third?.request.case !== 'responseHeaders') {
      throw new Error('other parts were expected')
    }
    expect(first.request.value.endOfStream).toBe(false)
    expect(fieldsOf(first.request.value)).toMatchObject({
      ':method': 'POST',
      ':scheme': 'http',
      ':authority': hostOf('plain'),
      ':path': '/cart?x=1',
    })
    expect(fieldsOf(third.request.value)).toMatchObject({ ':status': '200', 'x-from': 'upstream' })
  })

  it('sends the host name without a trailing dot', async () => {
    expect((await ask('plain', { host: `${hostOf('plain')}.` })).status).toBe(200)
    const first = server.streams.at(-1)?.messages[0]
    if (first?.request.case !== 'requestHeaders') throw new Error('a head was expected')
    expect(fieldsOf(first.request.value)[':authority']).toBe(hostOf('plain'))
    expect(received()?.headers.host).toBe(`${hostOf('plain')}.`)
  })

  it('sets end_of_stream on headers without a body', async () => {
    given.answer = (_, response) => response.writeHead(204).end()
    expect((await ask('plain')).status).toBe(204)
    expect(parts()).toEqual(['requestHeaders', 'responseHeaders'])
    const ends = server.streams.at(-1)?.messages.map(({ request: { value } }) => {
      return value !== undefined && 'endOfStream' in value && value.endOfStream
    })
    expect(ends).toEqual([true, true])
    await waitFor('the end of the stream', () => server.streams.at(-1)?.isGone)
  })

  it('reaches a Service, and a backend with the TLS and the credential of its policy', async () => {
    expect((await post('service', 'one')).status).toBe(200)
    expect((await post('secure', 'two')).status).toBe(200)
    expect(secure.streams.at(-1)?.metadata).toMatchObject({
      authorization: 'Bearer for-the-processor',
    })
    expect(received()?.body).toBe('two')
  })

  it('lets the processor change headers, but not those that route the request', async () => {
    given.processor = (message, stream) => {
      const part = message.request.case
      if (part === 'requestHeaders') {
        const fields = {
          'x-user': 'ann',
          ':path': '/other?y=2',
          ':method': 'DELETE',
          ':authority': 'evil.example.com',
          host: 'evil.example.com',
          'content-length': '3',
        }
        const response = setting(fields, ['x-old', ':path', 'host'])
        stream.send({ response: { case: part, value: { response } } })
      } else if (part === 'responseHeaders') {
        const response = setting({ ':status': '201', 'x-new': 'yes' }, ['x-from'])
        stream.send({ response: { case: part, value: { response } } })
      } else passAll(message, stream)
    }
    const headers = { 'x-user': 'root', 'x-old': '1' }
    const response = await ask('plain', { method: 'POST', body: 'hello', headers })
    expect([response.status, response.headers['x-new']]).toEqual([201, 'yes'])
    expect(response.headers).not.toHaveProperty('x-from')
    expect(received()).toMatchObject({ method: 'POST', path: '/other?y=2', body: 'hello' })
    expect(received()?.headers).toMatchObject({ host: hostOf('plain'), 'x-user': 'ann' })
    expect(received()?.headers).not.toHaveProperty('x-old')
  })

  it('keeps the last value of a header that the processor sets twice, and every cookie', async () => {
    const setHeaders = ['x-picked: a', 'x-picked: b', 'set-cookie: c=1', 'set-cookie: d=2'].map(
      (line) => {
        const [key = '', value = ''] = line.split(': ')
        return { header: { key, rawValue: Buffer.from(value) } }
      },
    )
    given.answer = (_, response) => response.setHeader('set-cookie', 'c=1').end('abcdef')
    given.processor = except('responseHeaders', (_, stream) => {
      const value = { response: { headerMutation: { setHeaders } } }
      stream.send({ response: { case: 'responseHeaders', value } })
    })
    const { headers } = await ask('plain')
    expect(headers).toMatchObject({ 'x-picked': 'b', 'set-cookie': ['c=1', 'd=2'] })
  })

  it('replaces bodies by the pieces that the processor returns', async () => {
    given.processor = (message, stream) => {
      const { case: part, value } = message.request
      if (part !== 'requestBody' && part !== 'responseBody') passAll(message, stream)
      else if (value.endOfStream) {
        stream.send(streamed(part, Buffer.from(`${part}: `), false))
        stream.send(streamed(part, value.body.slice(0, 3), true))
      }
    }
    given.answer = (_, response) => response.end('abcdef')
    expect((await post('plain', 'hello')).body).toBe('responseBody: abc')
    expect(received()).toMatchObject({ body: 'requestBody: hel' })
  })

  it('forwards pieces unchanged if the processor answers without a mutation', async () => {
    const large = 'abcdefg'.repeat(100_000)
    given.answer = ({ body }, response) => response.end(body)
    given.processor = (message, stream) => {
      const { case: part } = message.request
      if (part !== 'requestBody' && part !== 'responseBody') passAll(message, stream)
      else stream.send({ response: { case: part, value: { response: {} } } })
    }
    const response = await post('plain', large)
    expect(response.status).toBe(200)
    expect(received()?.body.toString() === large).toBe(true)
    expect(response.body === large).toBe(true)
  })

  it('waits for a processor that wants to see the body before it answers the headers', async () => {
    const late: Processor = ({ request }, stream) => {
      if (request.case !== 'requestBody' || !request.value.endOfStream) return
      const response = setting({ 'x-length': `${request.value.body.length}` })
      stream.send({ response: { case: 'requestHeaders', value: { response } } })
      stream.send(streamed('requestBody', request.value.body, true))
    }
    given.processor = (message, stream) =>
      (message.request.case?.startsWith('request') ? late : passAll)(message, stream)
    expect((await post('plain', 'hello')).status).toBe(200)
    expect(received()).toMatchObject({ body: 'hello', headers: { 'x-length': '5' } })
  })

  it('carries large bodies both ways, to a client that reads slowly', async () => {
    const large = Buffer.alloc(6_000_000, 'abcdefg')
    given.answer = ({ body }, response) => response.end(body)
    const options = { host: '127.0.0.1', port, method: 'POST', headers: { host: hostOf('plain') } }
    const outgoing = httpRequest({ ...options, agent: false })
    outgoing.end(large)
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    response.pause()
    await waitFor('the end of the request', () => received()?.body.length === large.length)
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    expect(Buffer.concat(chunks).equals(large)).toBe(true)
  })

  it('lets the processor replace a message at its headers, and then sends it no body', async () => {
    given.processor = except('requestHeaders', (_, stream) => {
      const bodyMutation = { mutation: { case: 'body', value: Buffer.from('other') } } as const
      const response = { ...setting({ 'x-n': '1' }), status: 1, bodyMutation }
      stream.send({ response: { case: 'requestHeaders', value: { response } } })
    })
    expect((await ask('plain')).status).toBe(200)
    expect(received()).toMatchObject({ body: 'other', headers: { 'x-n': '1' } })
    expect((await post('plain', 'hello')).status).toBe(200)
    expect(received()).toMatchObject({ body: 'other' })
  })

  it('returns the immediate response of the processor', async () => {
    const refuse: Processor = (_, stream) => {
      stream.send({
        response: {
          case: 'immediateResponse',
          value: {
            status: { code: 403 },
            headers: setting({ 'x-why': 'blocked' }).headerMutation,
            body: Buffer.from('no'),
          },
        },
      })
    }
    const before = upstream.received.length
    given.processor = except('requestHeaders', refuse)
    const response = await post('plain', 'hello')
    expect([response.status, response.body, response.headers['x-why']]).toEqual([
      403,
      'no',
      'blocked',
    ])
    expect(upstream.received).toHaveLength(before)
    given.processor = except('requestBody', refuse)
    expect(await post('plain', 'hello')).toMatchObject({ status: 403, body: 'no' })
    given.processor = except('responseHeaders', refuse)
    const changed = await post('plain', 'hello')
    expect([changed.status, changed.body, changed.headers['x-from']]).toEqual([
      403,
      'no',
      undefined,
    ])
  })

  it('uses 200 for an immediate response without a status', async () => {
    given.processor = except('requestHeaders', (_, stream) => {
      stream.send({ response: { case: 'immediateResponse', value: { body: Buffer.from('hi') } } })
    })
    expect(await ask('plain')).toMatchObject({ status: 200, body: 'hi' })
  })

  it('exposes dynamic metadata to expressions as extproc', async () => {
    given.processor = except('requestHeaders', (_, stream) => {
      const response = { case: 'requestHeaders', value: {} } as const
      stream.send({ response, dynamicMetadata: { tier: 'gold' } })
    })
    const response = await ask('metadata')
    expect(response.headers['x-tier']).toBe('gold')
    expect(received()?.headers['x-tier']).toBe('gold')
  })

  it('sends the claims of a verified token', async () => {
    const token = await sign(key, { iss: issuer, sub: 'ann' })
    const headers = { authorization: `Bearer ${token}` }
    expect((await ask('jwt', { headers })).status).toBe(200)
    const [first] = server.streams.at(-1)?.messages ?? []
    expect(first?.metadataContext?.filterMetadata).toMatchObject({
      'envoy.filters.http.jwt_authn': { jwt_payload: { sub: 'ann' } },
    })
  })

  it('can decide the route if it runs before routing', async () => {
    const tiered = () => running.send(early, { host: hostOf('tiered') })
    expect((await tiered()).status).toBe(404)
    given.processor = except('requestHeaders', (_, stream) => {
      const response = setting({ 'x-tier': 'gold' })
      stream.send({ response: { case: 'requestHeaders', value: { response } } })
    })
    expect((await tiered()).status).toBe(200)
  })

  it('does not see responses that the gateway makes itself', async () => {
    const before = server.streams.length
    given.processor = except('requestHeaders', (_, stream) => {
      stream.send({ response: { case: 'requestHeaders', value: {} } })
    })
    expect((await running.send(early, { host: hostOf('unknown') })).status).toBe(404)
    expect(server.streams).toHaveLength(before + 1)
    expect(parts()).toEqual(['requestHeaders'])
  })

  describe('processing modes that the processor asks for', () => {
    const asking = (modes: Fields, then: Processor = passAll): Processor => {
      return (message, stream) => {
        if (message.request.case !== 'requestHeaders') then(message, stream)
        else {
          const response = { case: 'requestHeaders', value: {} } as const
          stream.send({ response, modeOverride: modes })
        }
      }
    }
    const changing = (body: string): Processor => {
      return except('responseBody', (_, stream) => {
        const bodyMutation = { mutation: { case: 'body', value: Buffer.from(body) } } as const
        const response = { ...setting({ 'x-body': 'seen' }), bodyMutation }
        stream.send({ response: { case: 'responseBody', value: { response } } })
      })
    }
    beforeEach(() => {
      given.answer = (_, response) => response.end('abcdef')
    })

    it('can skip the response', async () => {
      given.processor = asking({ responseHeaderMode: 2, responseBodyMode: 0 })
      expect(await ask('plain')).toMatchObject({ status: 200, body: 'abcdef' })
      expect(parts()).toEqual(['requestHeaders'])
    })

    it('is over before the response if it skips the response', async () => {
      given.processor = asking({ responseHeaderMode: 2, responseBodyMode: 0 })
      given.answer = (_, response) => {
        const isOver = () => server.streams.at(-1)?.isGone
        void waitFor('the end of the stream', isOver).then(() => response.end('abcdef'))
      }
      expect(await ask('plain')).toMatchObject({ status: 200, body: 'abcdef' })
    })

    it('can buffer the whole body', async () => {
      given.processor = asking({ responseBodyMode: 2 }, changing('other'))
      const response = await ask('plain')
      expect([response.body, response.headers['x-body']]).toEqual(['other', 'seen'])
      expect(response.headers['content-length']).toBe('5')
    })

    it('send the beginning of a body that exceeds the limit', async () => {
      const large = Buffer.alloc(3_000_000, 'x')
      given.answer = (_, response) => response.end(large)
      given.processor = asking({ responseBodyMode: 3 }, changing('<'))
      const { body } = await ask('plain')
      const sent = server.streams.at(-1)?.messages.at(-1)?.request
      const length = sent?.case === 'responseBody' ? sent.value.body.length : 0
      expect(length).toBe(2_097_152)
      expect(body).toBe(`<${large.subarray(length).toString()}`)
      given.processor = asking({ responseBodyMode: 2 }, changing('<'))
      expect(await ask('plain')).toMatchObject(failed)
    })

    it('stream pieces, each of which is answered', async () => {
      const pieces: Processor = ({ request }, stream) => {
        if (request.case !== 'responseBody') return
        const body = Buffer.from(request.value.body).toString().toUpperCase()
        const bodyMutation = { mutation: { case: 'body', value: Buffer.from(body) } } as const
        stream.send({ response: { case: 'responseBody', value: { response: { bodyMutation } } } })
      }
      given.processor = asking({ responseBodyMode: 1 }, except('responseBody', pieces))
      expect((await ask('plain')).body).toBe('ABCDEF')
    })
  })

  describe('over HTTP/2', () => {
    it('carries bodies and trailers', async () => {
      const stream = overHttp2.request(
        { ':authority': hostOf('plain'), ':method': 'POST', ':path': '/' },
        { waitForTrailers: true },
      )
      stream.once('wantTrailers', () => stream.sendTrailers({ 'x-sum': '5' }))
      stream.end('hello')
      const chunks: Buffer[] = []
      for await (const chunk of stream) chunks.push(chunk as Buffer)
      expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({ body: 'hello' })
      expect(parts()).toContain('requestTrailers')
    })

    it('resets its stream if the client disconnects', async () => {
      given.processor = () => undefined
      const before = server.streams.length
      const stream = overHttp2.request({ ':authority': hostOf('plain'), ':path': '/' })
      stream.on('error', () => {})
      await waitFor('the question', () => server.streams.length > before)
      stream.close(8)
      await waitFor('the end of the question', () => server.streams.at(-1)?.isGone)
    })
  })

  it('is shown by explain', async () => {
    const where = ['-f', running.manifests]
    const asked = ['--host', hostOf('plain'), '--path', '/']
    const { stdout } = await sluice('explain', 'request', ...asked, ...where)
    expect(stdout).toContain('traffic.extProc')
  })
})
