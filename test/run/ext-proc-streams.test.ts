import { request as httpRequest } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { BareStream } from '../support/bare-processor.ts'
import type { TestResponse } from '../support/http-client.ts'
import { hostOf } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'
import { ask, bare, bareGiven, echo, failed, given, passEach, port, post } from './ext-proc-rig.ts'

type Mode = Readonly<Record<string, number>>

const refusal = {
  response: { case: 'immediateResponse', value: { status: { code: 419 } } },
} as const
const requestPass = (modeOverride?: Mode) =>
  ({
    response: { case: 'requestHeaders', value: {} },
    ...(modeOverride && { modeOverride }),
  }) as const
const responsePass = { response: { case: 'responseHeaders', value: {} } } as const

const refuseAndEnd = (stream: BareStream) => {
  stream.send(refusal)
  stream.end()
}

/** Refuses every response. If `loss` is set, it is called between request and response, before the upstream answers. */
async function askAndLose(
  loss: (stream: BareStream) => void,
  body?: string,
  mode?: Mode,
): Promise<TestResponse> {
  let opened: BareStream | undefined
  bareGiven.processor = (message, stream) => {
    opened = stream
    const { case: part } = message.request
    if (part === 'requestHeaders') stream.send(requestPass(mode))
    else if (part === 'responseHeaders') stream.send(refusal)
    else passEach(message, stream)
  }
  given.answer = (received, response) => {
    const ended = bare.endings.length
    if (opened !== undefined) loss(opened)
    void waitFor('the loss', () => bare.endings.length > ended).then(() => echo(received, response))
  }
  return body === undefined ? await ask('bare') : await post('bare', body)
}

describe('a processor that is lost after it answered the request', () => {
  const losses: readonly (readonly [string, (stream: BareStream) => void])[] = [
    ['ends with status 13', (stream) => stream.end(13)],
    ['loses its connection by FIN', () => bare.cut('FIN')],
    ['loses its connection by RST', () => bare.cut('RST')],
  ]
  it.each(losses)('fails the response with 500 if it %s', async (_, loss) => {
    expect(await askAndLose(loss)).toMatchObject(failed)
    expect(await askAndLose(loss, 'a body')).toMatchObject(failed)
    const bodyOnly = { responseHeaderMode: 2, responseBodyMode: 1 }
    expect(await askAndLose(loss, undefined, bodyOnly)).toMatchObject(failed)
  })

  it('fails the response if it is lost together with its answer to the request', async () => {
    bareGiven.processor = (_, stream) => {
      stream.send(requestPass())
      stream.end(13)
    }
    expect(await ask('bare')).toMatchObject(failed)
  })

  it.each([
    ['streamed', 1],
    ['buffered', 2],
    ['partly buffered', 3],
    ['full duplex', 4],
  ])('fails a response whose %s body it has not received', async (_, responseBodyMode) => {
    bareGiven.processor = ({ request }, stream) => {
      if (request.case === 'requestHeaders') stream.send(requestPass({ responseBodyMode }))
      if (request.case !== 'responseHeaders') return
      stream.send(responsePass)
      stream.end(13)
    }
    given.answer = (_, response) => response.end('a body that must not pass')
    // If the head was sent already, the response is broken off.
    expect(await ask('bare').catch(() => failed)).toMatchObject(failed)
  })

  it('fails a buffered response if it is lost while the gateway reads the body', async () => {
    let finish = () => {}
    bareGiven.processor = ({ request }, stream) => {
      if (request.case === 'requestHeaders') stream.send(requestPass({ responseBodyMode: 2 }))
      if (request.case !== 'responseHeaders') return
      const ended = bare.endings.length
      stream.send(responsePass)
      stream.end(13)
      void waitFor('the end', () => bare.endings.length > ended).then(() => finish())
    }
    given.answer = (_, response) => {
      response.write('first')
      finish = () => response.end('last')
    }
    expect(await ask('bare')).toMatchObject(failed)
  })

  it('lets its response to the client through that it sends before the upstream answers', async () => {
    expect(await askAndLose(refuseAndEnd)).toMatchObject({
      status: 419,
    })
  })
})

describe('streams to a processor', () => {
  const pass = async (count: number) => {
    const { length } = bare.endings
    for (let at = 0; at < count; at++) expect((await post('bare', 'hello')).status).toBe(200)
    await waitFor('the ends of all streams', () => bare.endings.length === length + count)
    return bare.endings.slice(length)
  }

  it('end with END_STREAM and without a reset', async () => {
    for (const ending of await pass(20))
      expect(ending).toEqual({ isHalfClosed: true, resetCode: 0 })
  })

  it.each([
    ['buffered', { responseBodyMode: 2 }],
    ['streamed', { responseBodyMode: 1 }],
    ['headers only', { responseBodyMode: 0 }],
    ['nothing of the response', { responseHeaderMode: 2, responseBodyMode: 0 }],
  ])('end without a reset if the mode is: %s', async (_, mode) => {
    bareGiven.processor = (message, stream) => {
      const { case: part } = message.request
      if (part === 'requestHeaders') stream.send(requestPass(mode))
      else if (part === 'responseBody' && mode.responseBodyMode < 4)
        stream.send({ response: { case: part, value: {} } })
      else passEach(message, stream)
    }
    const [ending] = await pass(1)
    expect(ending).toEqual({ isHalfClosed: true, resetCode: 0 })
  })

  it('end without a reset after a response of the processor or an end of its own', async () => {
    const endsOf = async (processor: typeof passEach, status: number) => {
      const { length } = bare.endings
      bareGiven.processor = processor
      expect((await ask('bare')).status).toBe(status)
      await waitFor('the end', () => bare.endings.length > length)
      return bare.endings.at(-1)?.resetCode
    }
    expect(await endsOf((_, stream) => stream.send(refusal), 419)).toBe(0)
    expect(await endsOf((_, stream) => refuseAndEnd(stream), 419)).toBe(0)
    expect(
      await endsOf((_, stream) => {
        stream.send(requestPass())
        stream.end()
      }, 200),
    ).toBe(0)
  })

  it('are reset when the client aborts the exchange', async () => {
    const { length } = bare.endings
    bareGiven.processor = () => undefined
    const { opened } = bare
    const headers = { host: hostOf('bare') }
    const outgoing = httpRequest({ port, host: '127.0.0.1', headers, agent: false }).end()
    outgoing.on('error', () => undefined)
    await waitFor('the stream', () => bare.opened > opened)
    outgoing.destroy()
    await waitFor('the reset', () => bare.endings.length > length)
    expect(bare.endings.at(-1)?.resetCode).toBe(8)
  })

  it('are reset some seconds later if the processor does not end them', async () => {
    bareGiven.endsAfterGateway = false
    const { length } = bare.endings
    expect((await ask('bare')).status).toBe(200)
    expect(bare.endings).toHaveLength(length)
    await waitFor('the reset', () => bare.endings.length > length, 15_000)
    expect(bare.endings.at(-1)).toEqual({ isHalfClosed: true, resetCode: 8 })
  })
})
