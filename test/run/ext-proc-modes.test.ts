import { once } from 'node:events'
import { connect } from 'node:http2'
import { beforeEach, describe, expect, it } from 'vitest'
import { type Processor, passAll, setting, startExtProcServer } from '../support/ext-proc-server.ts'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

type Fields = Record<string, unknown>
type Answer = Parameters<Parameters<Processor>[1]['send']>[0]

/** Lets every part pass, without a body of its own. */
const agree: Processor = ({ request }, stream) => {
  const { case: part } = request
  if (part !== undefined) stream.send({ response: { case: part, value: {} } } as Answer)
}
const given = { processor: agree }
const upstream = useUpstream('main', (received, response) =>
  response.setHeader('x-from', 'upstream').end(JSON.stringify(received)),
)
const server = useFixture(() =>
  startExtProcServer((message, stream) => given.processor(message, stream)),
)
const port = await freePort()
const down = await freePort()
const processed = (name: string, extProc: Fields, traffic: Fields = {}) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, {
    traffic: { extProc: { backendRef: toBackend('processor'), ...extProc }, ...traffic },
  }),
]
const modes = (request: string, response: string, more: Fields = {}) => ({
  processingOptions: { requestBodyMode: request, responseBodyMode: response, ...more },
})
const bodiless = modes('None', 'None')
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port, { http: { version: 'HTTP1' } }),
    staticBackend('processor', server.port),
    staticBackend('down', down),
    policy('small', 'Gateway/edge', { frontend: { http: { maxBufferSize: 4096 } } }),
    ...processed('none', bodiless),
    ...processed('skipped', modes('None', 'None', { responseHeaderMode: 'Skip' })),
    ...processed('only-body', modes('Buffered', 'None', { requestHeaderMode: 'Skip' })),
    ...processed('buffered', modes('Buffered', 'Buffered')),
    ...processed('partial', modes('BufferedPartial', 'BufferedPartial')),
    ...processed('streamed', modes('Streamed', 'Streamed')),
    ...processed('trailers', modes('None', 'None', { requestTrailerMode: 'Send' })),
    ...processed('overridable', modes('None', 'None', { allowModeOverride: true })),
    ...processed(
      'no-trailers',
      modes('FullDuplexStreamed', 'None', { requestTrailerMode: 'Skip' }),
    ),
    ...processed('open', { failureMode: 'FailOpen' }),
    ...processed('open-down', { failureMode: 'FailOpen', backendRef: toBackend('down') }),
    ...processed('open-buffered', { failureMode: 'FailOpen', ...modes('Buffered', 'Buffered') }),
    ...processed('impatient', { messageTimeout: '100ms' }),
    ...processed('observed', { observabilityMode: true }),
    ...processed('observed-down', { observabilityMode: true, backendRef: toBackend('down') }),
    ...processed('described', {
      metadataContext: { 'my.filter': { path: 'request.path', missing: 'jwt.sub' } },
      requestAttributes: { method: 'request.method', size: 'request.body.size()' },
      responseAttributes: { code: 'response.code' },
    }),
  ],
}))
const ask = (name: string, more: TestRequest = {}) =>
  running.send(port, { host: hostOf(name), path: '/a', ...more })
const post = (name: string, body: string) => ask(name, { method: 'POST', body })
const messages = () => server.streams.at(-1)?.messages ?? []
const parts = () => messages().map(({ request }) => request.case)
/** Answers one part, and agrees to all others. */
const answering = (part: string, answer: Answer | Processor): Processor => {
  return (message, stream) => {
    if (message.request.case !== part) agree(message, stream)
    else if (typeof answer === 'function') answer(message, stream)
    else stream.send(answer)
  }
}
const otherBody = (
  part: 'requestBody' | 'responseBody',
  body: string,
  more: Fields = {},
): Answer => {
  const mutation = { case: 'body', value: Buffer.from(body) } as const
  return { response: { case: part, value: { response: { ...more, bodyMutation: { mutation } } } } }
}
const failed = { status: 500, body: 'ext_proc failed' }

beforeEach(() => {
  given.processor = agree
  server.forget()
})

describe('the modes of extProc [ExtProc.processingOptions]', () => {
  it('[ExtProcProcessingOptions.requestBodyMode] [ExtProcProcessingOptions.responseBodyMode] sends bodies as configured', async () => {
    const head = ['requestHeaders', 'responseHeaders']
    const all = ['requestHeaders', 'requestBody', 'responseHeaders', 'responseBody']
    for (const [name, expected] of [
      ['none', head],
      ['buffered', all],
      ['partial', all],
      ['streamed', all],
    ] as const) {
      const { status, body } = await post(name, 'hello')
      expect([status, JSON.parse(body).body]).toEqual([200, 'hello'])
      expect(parts()).toEqual(expected)
      if (name !== 'none') expect(messages()[0]?.protocolConfig?.requestBodyMode).toBeGreaterThan(0)
    }
  })

  it('[ExtProcProcessingOptions.requestHeaderMode] [ExtProcProcessingOptions.responseHeaderMode] skips headers', async () => {
    expect((await post('skipped', 'hello')).status).toBe(200)
    expect(parts()).toEqual(['requestHeaders'])
    await waitFor('the end of the stream', () => server.streams.at(-1)?.isGone)
    given.processor = answering('requestBody', otherBody('requestBody', 'other'))
    expect((await post('only-body', 'hello')).status).toBe(200)
    expect(parts()).toEqual(['requestBody', 'responseHeaders'])
    expect(upstream.received.at(-1)?.body).toBe('other')
  })

  it('lets the processor replace a buffered request, and refuses bodies that it could not see whole', async () => {
    given.processor = answering(
      'requestBody',
      otherBody('requestBody', 'longer than before', setting({ 'x-seen': 'yes' })),
    )
    expect((await post('buffered', 'hello')).status).toBe(200)
    expect(upstream.received.at(-1)).toMatchObject({
      body: 'longer than before',
      headers: { 'x-seen': 'yes', 'content-length': '18' },
    })
    const before = upstream.received.length
    const framings: Record<string, string>[] = [{}, { 'transfer-encoding': 'chunked' }]
    for (const headers of framings) {
      const large = { method: 'POST', body: 'a'.repeat(5_000), headers }
      expect((await ask('buffered', large)).status).toBe(413)
    }
    expect(upstream.received).toHaveLength(before)
  })

  it('sends the beginning of a larger body in mode BufferedPartial', async () => {
    given.processor = answering('requestBody', otherBody('requestBody', '<'))
    expect((await post('partial', `${'a'.repeat(4_096)}rest`)).status).toBe(200)
    expect(upstream.received.at(-1)?.body).toMatch(/^<a*rest$/)
    const sent = messages().find(({ request }) => request.case === 'requestBody')?.request.value
    expect(sent).toMatchObject({ endOfStream: false })
  })

  it('[ExtProcProcessingOptions.requestTrailerMode] [ExtProcProcessingOptions.responseTrailerMode] sends trailers of bodies that pass', async () => {
    const set = [{ header: { key: 'x-sum', rawValue: Buffer.from('2') } }]
    given.processor = answering('requestTrailers', {
      response: { case: 'requestTrailers', value: { headerMutation: { setHeaders: set } } },
    })
    const session = connect(`http://127.0.0.1:${port}`)
    try {
      const stream = session.request(
        { ':method': 'POST', ':path': '/a', ':authority': hostOf('trailers') },
        { waitForTrailers: true },
      )
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '1' }))
      const answered = once(stream, 'response')
      stream.end('hello').resume()
      const [{ ':status': status }] = (await answered) as [Record<string, unknown>]
      expect(status).toBe(200)
    } finally {
      session.destroy()
    }
    expect(parts()).toEqual(['requestHeaders', 'requestTrailers', 'responseHeaders'])
    expect(upstream.received.at(-1)).toMatchObject({ body: 'hello' })
    const { message } = await running.condition('GatewayPolicy', 'no-trailers', 'Accepted', 'False')
    expect(message).toContain('processingOptions.requestTrailerMode: must be Send')
  })

  it('[ExtProcProcessingOptions.allowModeOverride] changes modes of what has not begun, if the policy allows it', async () => {
    const modeOverride = { requestBodyMode: 2, responseHeaderMode: 2 }
    given.processor = (message, stream) => {
      if (message.request.case !== 'requestHeaders') agree(message, stream)
      else stream.send({ response: { case: 'requestHeaders', value: {} }, modeOverride })
    }
    await post('overridable', 'hello')
    expect(parts()).toEqual(['requestHeaders', 'requestBody'])
    await post('none', 'hello')
    expect(parts()).toEqual(['requestHeaders', 'responseHeaders'])
    given.processor = answering('responseHeaders', {
      response: { case: 'responseHeaders', value: {} },
      modeOverride: { responseBodyMode: 2 },
    })
    expect((await post('overridable', 'hello')).status).toBe(200)
    expect(parts()).toEqual(['requestHeaders', 'responseHeaders', 'responseBody'])
  })

  it('responds to the client when the processor answers a body', async () => {
    const immediate: Answer = {
      response: {
        case: 'immediateResponse',
        value: { status: { code: 451 }, body: Buffer.from('no') },
      },
    }
    const before = upstream.received.length
    given.processor = answering('requestBody', immediate)
    expect(await post('buffered', 'hello')).toMatchObject({ status: 451, body: 'no' })
    expect(upstream.received).toHaveLength(before)
    given.processor = answering('responseBody', immediate)
    expect(await post('buffered', 'hi')).toMatchObject({ status: 451, body: 'no' })
  })
})

describe('what else extProc does', () => {
  it('[ExtProc.failureMode] continues if the processor fails before it has changed a message', async () => {
    expect((await post('open-down', 'hello')).status).toBe(200)
    for (const name of ['open', 'open-buffered']) {
      for (const part of ['requestHeaders', 'requestBody', 'responseHeaders', 'responseBody']) {
        given.processor = answering(part, (_, stream) => stream.end(13))
        const { status, body } = await post(name, 'hello')
        expect([part, status, JSON.parse(body).body]).toEqual([part, 200, 'hello'])
      }
    }
    given.processor = answering('requestHeaders', {})
    expect((await post('open', 'hello')).status).toBe(200)
    given.processor = agree
    expect((await post('open-buffered', 'a'.repeat(5_000))).status).toBe(413)
  })

  it('fails if the processor is lost after it has changed a part of the body', async () => {
    given.processor = (message, stream) => {
      if (message.request.case !== 'requestBody') passAll(message, stream)
      else {
        stream.send(otherBody('requestBody', 'other'))
        stream.end(13)
      }
    }
    const large = { method: 'POST', body: 'hello', headers: { 'transfer-encoding': 'chunked' } }
    const { status } = await ask('open', large)
    expect([200, 500]).toContain(status)
    if (status === 200) expect(upstream.received.at(-1)?.body).toBe('other')
  })

  it('[ExtProc.messageTimeout] fails if the processor does not answer in time', async () => {
    given.processor = () => undefined
    expect(await ask('impatient')).toMatchObject(failed)
  })

  it('[ExtProc.observabilityMode] sends everything, and ignores answers and failures', async () => {
    given.processor = answering('requestHeaders', {
      response: { case: 'immediateResponse', value: { status: { code: 403 } } },
    })
    const body = 'hello'.repeat(50_000)
    const response = await post('observed', body)
    expect([response.status, JSON.parse(response.body).body]).toEqual([200, body])
    await waitFor('the end of the stream', () => server.streams.at(-1)?.isGone)
    expect(messages().every(({ observabilityMode }) => observabilityMode)).toBe(true)
    const seen = messages().flatMap(({ request }) =>
      request.case === 'requestBody' ? [Buffer.from(request.value.body)] : [],
    )
    expect(Buffer.concat(seen).toString()).toBe(body)
    expect(new Set(parts())).toEqual(
      new Set(['requestHeaders', 'requestBody', 'responseHeaders', 'responseBody']),
    )
    given.processor = answering('requestHeaders', (_, stream) => stream.end(13))
    // Some processors end before the body does, some after it.
    for (let n = 0; n < 10; n++) expect((await post('observed', body)).status).toBe(200)
    expect((await post('observed-down', body)).status).toBe(200)
  })

  it('[ExtProc.metadataContext] [ExtProc.requestAttributes] [ExtProc.responseAttributes] sends values of expressions with headers', async () => {
    given.processor = passAll
    expect((await post('described', 'hello')).status).toBe(200)
    const [first, second] = messages().filter(({ request }) => request.case?.endsWith('Headers'))
    expect(first?.metadataContext?.filterMetadata).toEqual({ 'my.filter': { path: '/a' } })
    const filter = 'envoy.filters.http.ext_proc'
    expect(first?.attributes).toEqual({ [filter]: { method: 'POST', size: 5 } })
    expect(second?.attributes).toEqual({ [filter]: { code: 200 } })
  })
})
