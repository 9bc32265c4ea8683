import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:http2'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  type ExtProcServer,
  fieldsOf,
  type Processor,
  passAll,
  setting,
  startExtProcServer,
  streamed,
} from '../support/ext-proc-server.ts'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import type { TestRequest, TestResponse } from '../support/http-client.ts'
import { keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import {
  configMap,
  gateway,
  httpRoute,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { Answer } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

type Fields = Record<string, unknown>

const issuer = 'https://idp.example.com'
const at = (name: string) => `${name}.example.com`
const echo: Answer = (received, response) => {
  response.setHeader('x-from', 'upstream')
  response.end(JSON.stringify(received))
}
const processed = (name: string, backendRef: Fields, traffic: Fields = {}) => [
  httpRoute(name, { hostnames: [at(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, { traffic: { extProc: { backendRef }, ...traffic } }),
]
let processor: Processor
let answer: Answer

const key = await signingKey('one')
const upstream = useUpstream('main', (received, response) => answer(received, response))
const authority = useAuthority()
const any: Processor = (message, stream) => processor(message, stream)
const server = useFixture(() => startExtProcServer(any))
const secure = useFixture(() => startExtProcServer(any, authority.issue(['processor.example.com'])))
const port = await freePort()
const early = await freePort()
const down = await freePort()
const running = useGateway(() => {
  const listeners = [
    { name: 'http', port, protocol: 'HTTP' },
    { name: 'early', port: early, protocol: 'HTTP' },
  ]
  const jwt = { providers: [{ issuer, jwks: { inline: JSON.stringify(keySetOf(key)) } }] }
  const shown = [{ name: 'x-tier', value: 'extproc.tier' }]
  return {
    manifests: [
      gateway(port, { listeners }),
      staticBackend('main', upstream.port, { http: { version: 'HTTP1' } }),
      staticBackend('processor', server.port),
      staticBackend('down', down),
      staticBackend('impatient', server.port),
      policy('impatience', 'GatewayBackend/impatient', {
        backend: { http: { requestTimeout: '100ms' } },
      }),
      staticBackend('old', server.port),
      policy('old-http', 'GatewayBackend/old', { backend: { http: { version: 'HTTP1' } } }),
      configMap('authority', { 'ca.crt': authority.certificate }),
      staticBackend('secure', secure.port),
      policy('secure-backend', 'GatewayBackend/secure', {
        backend: {
          tls: { sni: 'processor.example.com', caCertificateRefs: [{ name: 'authority' }] },
          auth: { key: 'for-the-processor' },
        },
      }),
      ...service('processor', [server.port]),
      ...processed('plain', toBackend('processor')),
      ...processed('service', { name: 'processor', port: 80 }),
      ...processed('secure', toBackend('secure')),
      ...processed('down', toBackend('down')),
      ...processed('old', toBackend('old')),
      ...processed('impatient', toBackend('impatient')),
      ...processed('nowhere', toBackend('nowhere')),
      ...processed('metadata', toBackend('processor'), {
        transformation: { request: { set: shown }, response: { set: shown } },
      }),
      ...processed('jwt', toBackend('processor'), { jwtAuthentication: jwt }),
      httpRoute('tiered', {
        hostnames: [at('tiered')],
        rules: [
          {
            matches: [{ headers: [{ name: 'x-tier', value: 'gold' }] }],
            backendRefs: [toBackend('main')],
          },
        ],
      }),
      policy('early', 'Gateway/edge#early', {
        traffic: { phase: 'PreRouting', extProc: { backendRef: toBackend('processor') } },
      }),
    ],
  }
})
const overHttp2 = useFixture(
  () => connect(`http://127.0.0.1:${port}`),
  (part) => part.destroy(),
)
beforeEach(() => {
  processor = passAll
  answer = echo
})

const ask = (name: string, more: TestRequest = {}): Promise<TestResponse> =>
  running.send(port, { host: at(name), path: '/cart?x=1', ...more })
const post = (name: string, body: string) => ask(name, { method: 'POST', body })
const received = () => upstream.received.at(-1)
const parts = (from: ExtProcServer = server) =>
  from.streams.at(-1)?.messages.map(({ request }) => request.case)
/** Passes everything on but the part that is told; that gets another answer. */
const except = (part: string, answered: Processor): Processor => {
  return (message, stream) => (message.request.case === part ? answered : passAll)(message, stream)
}
const failed = { status: 500, body: 'ext_proc failed' }

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
      ':authority': at('plain'),
      ':path': '/cart?x=1',
    })
    expect(fieldsOf(third.request.value)).toMatchObject({ ':status': '200', 'x-from': 'upstream' })
  })

  it('tells the name of a host without the dot of its absolute form', async () => {
    expect((await ask('plain', { host: `${at('plain')}.` })).status).toBe(200)
    const first = server.streams.at(-1)?.messages[0]
    if (first?.request.case !== 'requestHeaders') throw new Error('a head was expected')
    expect(fieldsOf(first.request.value)[':authority']).toBe(at('plain'))
    expect(received()?.headers.host).toBe(`${at('plain')}.`)
  })

  it('says where there is no body', async () => {
    answer = (_, response) => response.writeHead(204).end()
    expect((await ask('plain')).status).toBe(204)
    expect(parts()).toEqual(['requestHeaders', 'responseHeaders'])
    const ends = server.streams.at(-1)?.messages.map(({ request: { value } }) => {
      return value !== undefined && 'endOfStream' in value && value.endOfStream
    })
    expect(ends).toEqual([true, true])
    await waitFor('the end of the stream', () => server.streams.at(-1)?.isGone)
  })

  it('asks a Service, and a backend with the TLS and the credential that its policy says', async () => {
    expect((await post('service', 'one')).status).toBe(200)
    expect((await post('secure', 'two')).status).toBe(200)
    expect(secure.streams.at(-1)?.metadata).toMatchObject({
      authorization: 'Bearer for-the-processor',
    })
    expect(received()?.body).toBe('two')
  })

  it('changes headers, but not those that say where a request goes', async () => {
    processor = (message, stream) => {
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
    expect(received()?.headers).toMatchObject({ host: at('plain'), 'x-user': 'ann' })
    expect(received()?.headers).not.toHaveProperty('x-old')
  })

  it('keeps the last value of a header that the processor sets twice, and every cookie', async () => {
    const setHeaders = ['x-picked: a', 'x-picked: b', 'set-cookie: c=1', 'set-cookie: d=2'].map(
      (line) => {
        const [key = '', value = ''] = line.split(': ')
        return { header: { key, rawValue: Buffer.from(value) } }
      },
    )
    answer = (_, response) => response.setHeader('set-cookie', 'c=1').end('abcdef')
    processor = except('responseHeaders', (_, stream) => {
      const value = { response: { headerMutation: { setHeaders } } }
      stream.send({ response: { case: 'responseHeaders', value } })
    })
    const { headers } = await ask('plain')
    expect(headers).toMatchObject({ 'x-picked': 'b', 'set-cookie': ['c=1', 'd=2'] })
  })

  it('replaces bodies by whatever pieces come back', async () => {
    processor = (message, stream) => {
      const { case: part, value } = message.request
      if (part !== 'requestBody' && part !== 'responseBody') passAll(message, stream)
      else if (value.endOfStream) {
        stream.send(streamed(part, Buffer.from(`${part}: `), false))
        stream.send(streamed(part, value.body.slice(0, 3), true))
      }
    }
    answer = (_, response) => response.end('abcdef')
    expect((await post('plain', 'hello')).body).toBe('responseBody: abc')
    expect(received()).toMatchObject({ body: 'requestBody: hel' })
  })

  it('sends pieces on unchanged if the processor answers them without a mutation', async () => {
    const large = 'abcdefg'.repeat(100_000)
    answer = ({ body }, response) => response.end(body)
    processor = (message, stream) => {
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
    processor = (message, stream) =>
      (message.request.case?.startsWith('request') ? late : passAll)(message, stream)
    expect((await post('plain', 'hello')).status).toBe(200)
    expect(received()).toMatchObject({ body: 'hello', headers: { 'x-length': '5' } })
  })

  it('carries large bodies both ways, to a client that reads slowly', async () => {
    const large = Buffer.alloc(6_000_000, 'abcdefg')
    answer = ({ body }, response) => response.end(body)
    const options = { host: '127.0.0.1', port, method: 'POST', headers: { host: at('plain') } }
    const outgoing = httpRequest({ ...options, agent: false })
    outgoing.end(large)
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    response.pause()
    await waitFor('the end of the request', () => received()?.body.length === large.length)
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    expect(Buffer.concat(chunks).equals(large)).toBe(true)
  })

  it('replaces a message at its headers, and is told nothing more of it', async () => {
    processor = except('requestHeaders', (_, stream) => {
      const bodyMutation = { mutation: { case: 'body', value: Buffer.from('other') } } as const
      const response = { ...setting({ 'x-n': '1' }), status: 1, bodyMutation }
      stream.send({ response: { case: 'requestHeaders', value: { response } } })
    })
    expect((await ask('plain')).status).toBe(200)
    expect(received()).toMatchObject({ body: 'other', headers: { 'x-n': '1' } })
    expect((await post('plain', 'hello')).status).toBe(200)
    expect(received()).toMatchObject({ body: 'other' })
  })

  it('answers at once where the processor does', async () => {
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
    processor = except('requestHeaders', refuse)
    const response = await post('plain', 'hello')
    expect([response.status, response.body, response.headers['x-why']]).toEqual([
      403,
      'no',
      'blocked',
    ])
    expect(upstream.received).toHaveLength(before)
    processor = except('requestBody', refuse)
    expect(await post('plain', 'hello')).toMatchObject({ status: 403, body: 'no' })
    processor = except('responseHeaders', refuse)
    const changed = await post('plain', 'hello')
    expect([changed.status, changed.body, changed.headers['x-from']]).toEqual([
      403,
      'no',
      undefined,
    ])
  })

  it('takes 200 for an answer without a status', async () => {
    processor = except('requestHeaders', (_, stream) => {
      stream.send({ response: { case: 'immediateResponse', value: { body: Buffer.from('hi') } } })
    })
    expect(await ask('plain')).toMatchObject({ status: 200, body: 'hi' })
  })

  it('shows what it learned as extproc', async () => {
    processor = except('requestHeaders', (_, stream) => {
      const response = { case: 'requestHeaders', value: {} } as const
      stream.send({ response, dynamicMetadata: { tier: 'gold' } })
    })
    const response = await ask('metadata')
    expect(response.headers['x-tier']).toBe('gold')
    expect(received()?.headers['x-tier']).toBe('gold')
  })

  it('is told the claims of a verified token', async () => {
    const token = await sign(key, { iss: issuer, sub: 'ann' })
    const headers = { authorization: `Bearer ${token}` }
    expect((await ask('jwt', { headers })).status).toBe(200)
    const [first] = server.streams.at(-1)?.messages ?? []
    expect(first?.metadataContext?.filterMetadata).toMatchObject({
      'envoy.filters.http.jwt_authn': { jwt_payload: { sub: 'ann' } },
    })
  })

  it('decides the route where it runs before routing', async () => {
    const tiered = () => running.send(early, { host: at('tiered') })
    expect((await tiered()).status).toBe(404)
    processor = except('requestHeaders', (_, stream) => {
      const response = setting({ 'x-tier': 'gold' })
      stream.send({ response: { case: 'requestHeaders', value: { response } } })
    })
    expect((await tiered()).status).toBe(200)
  })

  it('leaves alone what the gateway itself answers', async () => {
    const before = server.streams.length
    processor = except('requestHeaders', (_, stream) => {
      stream.send({ response: { case: 'requestHeaders', value: {} } })
    })
    expect((await running.send(early, { host: at('unknown') })).status).toBe(404)
    expect(server.streams).toHaveLength(before + 1)
    expect(parts()).toEqual(['requestHeaders'])
  })

  describe('modes that it asks for', () => {
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
      answer = (_, response) => response.end('abcdef')
    })

    it('tells nothing of the response', async () => {
      processor = asking({ responseHeaderMode: 2, responseBodyMode: 0 })
      expect(await ask('plain')).toMatchObject({ status: 200, body: 'abcdef' })
      expect(parts()).toEqual(['requestHeaders'])
    })

    it('tells the whole body at once', async () => {
      processor = asking({ responseBodyMode: 2 }, changing('other'))
      const response = await ask('plain')
      expect([response.body, response.headers['x-body']]).toEqual(['other', 'seen'])
      expect(response.headers['content-length']).toBe('5')
    })

    it('tells the beginning of a body that is too large', async () => {
      const large = Buffer.alloc(3_000_000, 'x')
      answer = (_, response) => response.end(large)
      processor = asking({ responseBodyMode: 3 }, changing('<'))
      const { body } = await ask('plain')
      const sent = server.streams.at(-1)?.messages.at(-1)?.request
      const length = sent?.case === 'responseBody' ? sent.value.body.length : 0
      expect(length).toBe(2_097_152)
      expect(body).toBe(`<${large.subarray(length).toString()}`)
      processor = asking({ responseBodyMode: 2 }, changing('<'))
      expect(await ask('plain')).toMatchObject(failed)
    })

    it('tells pieces, each of which is answered', async () => {
      const pieces: Processor = ({ request }, stream) => {
        if (request.case !== 'responseBody') return
        const body = Buffer.from(request.value.body).toString().toUpperCase()
        const bodyMutation = { mutation: { case: 'body', value: Buffer.from(body) } } as const
        stream.send({ response: { case: 'responseBody', value: { response: { bodyMutation } } } })
      }
      processor = asking({ responseBodyMode: 1 }, except('responseBody', pieces))
      expect((await ask('plain')).body).toBe('ABCDEF')
    })
  })

  describe('over HTTP/2', () => {
    it('carries bodies and trailers', async () => {
      const stream = overHttp2.request(
        { ':authority': at('plain'), ':method': 'POST', ':path': '/' },
        { waitForTrailers: true },
      )
      stream.once('wantTrailers', () => stream.sendTrailers({ 'x-sum': '5' }))
      stream.end('hello')
      const chunks: Buffer[] = []
      for await (const chunk of stream) chunks.push(chunk as Buffer)
      expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({ body: 'hello' })
      expect(parts()).toContain('requestTrailers')
    })

    it('gives the stream up when the client goes away', async () => {
      processor = () => undefined
      const before = server.streams.length
      const stream = overHttp2.request({ ':authority': at('plain'), ':path': '/' })
      stream.on('error', () => {})
      await waitFor('the question', () => server.streams.length > before)
      stream.close(8)
      await waitFor('the end of the question', () => server.streams.at(-1)?.isGone)
    })
  })

  describe('fails closed', () => {
    it('where there is no processor', async () => {
      const before = upstream.received.length
      expect(await ask('down')).toMatchObject(failed)
      const headers = { 'content-type': 'application/grpc' }
      const refused = await ask('down', { headers })
      expect([refused.status, refused.headers['grpc-status']]).toEqual([200, '2'])
      expect(await ask('old')).toMatchObject(failed)
      expect(upstream.received).toHaveLength(before)
      await waitFor('the line', () => /http\.status=500 .*reason=ExtProc/.test(running.stdout))
    })

    it('where it says nothing', async () => {
      processor = () => undefined
      expect(await ask('impatient')).toMatchObject(failed)
      processor = except('requestBody', () => undefined)
      expect(await post('impatient', 'hello')).toMatchObject(failed)
      processor = except('responseHeaders', () => undefined)
      expect(await ask('impatient')).toMatchObject(failed)
    })

    it('where it ends in an error, or before it has answered the request', async () => {
      const ends = ['requestHeaders', 'requestBody', 'responseHeaders'].flatMap((part) =>
        [13, undefined].map((status) => ({ part, status })),
      )
      for (const { part, status } of ends) {
        if (part === 'responseHeaders' && status === undefined) continue
        processor = except(part, (_, stream) => stream.end(status))
        expect(await post('plain', 'hello')).toMatchObject(failed)
      }
    })

    it('breaks a response off that it does not give back', async () => {
      processor = except('responseBody', ({ request }, stream) => {
        if (request.case === 'responseBody')
          stream.send(streamed(request.case, Buffer.from('a'), false))
      })
      const options = { host: '127.0.0.1', port, headers: { host: at('plain') }, agent: false }
      const outgoing = httpRequest(options).end()
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
      await once(response, 'data')
      server.streams.at(-1)?.end(13)
      await expect(once(response, 'end')).rejects.toThrow('aborted')
    })

    it('where it breaks the protocol', async () => {
      const bodiless: Processor = (_, stream) => {
        stream.send(streamed('requestBody', Buffer.from('a'), false))
        stream.send({ response: { case: 'requestBody', value: {} } })
      }
      processor = except('requestBody', bodiless)
      expect(await post('plain', 'hello')).toMatchObject(failed)
      processor = except('requestHeaders', (_, stream) => {
        stream.send({ response: { case: 'responseHeaders', value: {} } })
      })
      expect(await ask('plain')).toMatchObject(failed)
      processor = except('requestHeaders', (_, stream) => stream.send({}))
      expect(await ask('plain')).toMatchObject(failed)
      processor = except('requestHeaders', (_, stream) => {
        stream.send({ response: { case: 'immediateResponse', value: { status: { code: 101 } } } })
      })
      expect(await ask('plain')).toMatchObject(failed)
    })

    it('says in its status what cannot be resolved', async () => {
      const { message } = await running.condition('GatewayPolicy', 'nowhere', 'Accepted', 'False')
      expect(message).toContain('backendRef: GatewayBackend default/nowhere does not exist')
      expect((await ask('nowhere')).status).toBe(500)
      const fine = await running.condition('GatewayPolicy', 'plain', 'Accepted', 'True')
      expect(fine.status).toBe('True')
    })
  })

  it('lets the rest pass once the processor has ended the conversation well', async () => {
    processor = except('requestHeaders', (message, stream) => {
      passAll(message, stream)
      stream.end()
    })
    // Not before the gateway knows of the end.
    answer = (received, response) => {
      void waitFor('the end', () => server.streams.at(-1)?.isGone).then(() =>
        echo(received, response),
      )
    }
    expect((await ask('plain')).status).toBe(200)
    expect(parts()).toEqual(['requestHeaders'])
  })

  it('passes a response on as it is when the processor ends well without a word on it', async () => {
    processor = except('responseHeaders', (_, stream) => stream.end())
    const body = 'some of it '.repeat(30_000)
    answer = (_, response) => response.setHeader('x-from', 'upstream').end(body)
    const response = await ask('plain')
    expect(response).toMatchObject({ status: 200, body })
    expect(response.headers['x-from']).toBe('upstream')
  })

  it('is named by explain', async () => {
    const where = ['-f', running.manifests]
    const asked = ['--host', at('plain'), '--path', '/']
    const { stdout } = await sluice('explain', 'request', ...asked, ...where)
    expect(stdout).toContain('traffic.extProc')
  })
})
