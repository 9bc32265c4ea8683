import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { type Processor, passAll, streamed } from '../support/ext-proc-server.ts'
import { hostOf } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  ask,
  echo,
  except,
  failed,
  given,
  parts,
  port,
  post,
  running,
  server,
  upstream,
} from './ext-proc-rig.ts'

describe('extProc with a processor that fails or ends early', () => {
  describe('fails closed', () => {
    it('if the processor is unreachable', async () => {
      const before = upstream.received.length
      expect(await ask('down')).toMatchObject(failed)
      const headers = { 'content-type': 'application/grpc' }
      const refused = await ask('down', { headers })
      expect([refused.status, refused.headers['grpc-status']]).toEqual([200, '2'])
      expect(await ask('old')).toMatchObject(failed)
      expect(upstream.received).toHaveLength(before)
      await waitFor('the line', () => /http\.status=500 .*reason=ExtProc/.test(running.stdout))
    })

    it('if the processor does not answer', async () => {
      given.processor = () => undefined
      expect(await ask('impatient')).toMatchObject(failed)
      given.processor = except('requestBody', () => undefined)
      expect(await post('impatient', 'hello')).toMatchObject(failed)
      given.processor = except('responseHeaders', () => undefined)
      expect(await ask('impatient')).toMatchObject(failed)
    })

    it('if the processor ends with an error or before it has answered the request', async () => {
      const ends = ['requestHeaders', 'requestBody', 'responseHeaders'].flatMap((part) =>
        [13, undefined].map((status) => ({ part, status })),
      )
      for (const { part, status } of ends) {
        if (part === 'responseHeaders' && status === undefined) continue
        given.processor = except(part, (_, stream) => stream.end(status))
        expect(await post('plain', 'hello')).toMatchObject(failed)
      }
    })

    it('if a response is lost and sent again, since the processor has got the first one', async () => {
      const before = upstream.received.length
      const isAgain = () => upstream.received.length > before + 1
      // It replaces the body, so that it has nothing more to answer.
      const mutation = { case: 'body', value: Buffer.from('other') } as const
      const value = { response: { status: 1, bodyMutation: { mutation } } }
      given.processor = except('responseHeaders', (_, stream) => {
        const replace = () => stream.send({ response: { case: 'responseHeaders', value } })
        void waitFor('the retry', isAgain).then(replace)
      })
      given.answer = (received, response) => {
        if (isAgain()) {
          const isOver = () => server.streams.at(-1)?.isGone
          void waitFor('the end', isOver).then(() => echo(received, response))
          return
        }
        response.write('lost')
        void waitFor('the head', () => parts()?.includes('responseHeaders')).then(() =>
          response.destroy(),
        )
      }
      expect(await ask('retried')).toMatchObject(failed)
    })

    it('and breaks off a response that the processor does not return', async () => {
      given.processor = except('responseBody', ({ request }, stream) => {
        if (request.case === 'responseBody')
          stream.send(streamed(request.case, Buffer.from('a'), false))
      })
      const options = { host: '127.0.0.1', port, headers: { host: hostOf('plain') }, agent: false }
      const outgoing = httpRequest(options).end()
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
      await once(response, 'data')
      server.streams.at(-1)?.end(13)
      await expect(once(response, 'end')).rejects.toThrow('aborted')
    })

    it('if the processor violates the protocol', async () => {
      const bodiless: Processor = (_, stream) => {
        stream.send(streamed('requestBody', Buffer.from('a'), false))
        stream.send({ response: { case: 'requestBody', value: {} } })
      }
      given.processor = except('requestBody', bodiless)
      expect(await post('plain', 'hello')).toMatchObject(failed)
      given.processor = except('requestHeaders', (_, stream) => {
        stream.send({ response: { case: 'responseHeaders', value: {} } })
      })
      expect(await ask('plain')).toMatchObject(failed)
      given.processor = except('requestHeaders', (_, stream) => stream.send({}))
      expect(await ask('plain')).toMatchObject(failed)
      given.processor = except('requestHeaders', (_, stream) => {
        stream.send({ response: { case: 'immediateResponse', value: { status: { code: 101 } } } })
      })
      expect(await ask('plain')).toMatchObject(failed)
    })

    it('if an answer decides something that the gateway does not know', async () => {
      given.processor = except('requestHeaders', (_, stream) => {
        stream.send({ response: { case: 'requestHeaders', value: { response: { status: 2 } } } })
      })
      expect(await ask('plain')).toMatchObject(failed)
      given.processor = except('responseHeaders', (_, stream) => {
        stream.send({ response: { case: 'responseHeaders', value: { response: { status: -1 } } } })
      })
      expect(await ask('plain')).toMatchObject(failed)
      given.processor = except('requestBody', (_, stream) => {
        stream.send({ response: { case: 'requestBody', value: { response: { status: 7 } } } })
      })
      expect(await post('plain', 'hello')).toMatchObject(failed)
      // A body that is answered piece by piece must not pass where the processor streams another one.
      given.processor = except('requestBody', ({ request }, stream) => {
        const { endOfStream } = request.value as { endOfStream: boolean }
        stream.send({ response: { case: 'requestBody', value: {} } })
        stream.send(streamed('requestBody', Buffer.from('other'), endOfStream))
      })
      expect(await post('plain', 'hello')).toMatchObject(failed)
    })

    it('and reports an unresolved backend in the status', async () => {
      const { message } = await running.condition('GatewayPolicy', 'nowhere', 'Accepted', 'False')
      expect(message).toContain('backendRef: GatewayBackend default/nowhere does not exist')
      expect((await ask('nowhere')).status).toBe(500)
      const fine = await running.condition('GatewayPolicy', 'plain', 'Accepted', 'True')
      expect(fine.status).toBe('True')
    })
  })

  it('forwards the rest unchanged once the processor has closed the stream normally', async () => {
    given.processor = except('requestHeaders', (message, stream) => {
      passAll(message, stream)
      stream.end()
    })
    // Not before the gateway knows of the end.
    given.answer = (received, response) => {
      void waitFor('the end', () => server.streams.at(-1)?.isGone).then(() =>
        echo(received, response),
      )
    }
    expect((await ask('plain')).status).toBe(200)
    expect(parts()).toEqual(['requestHeaders'])
  })

  it('forwards a response unchanged if the processor closes the stream before it', async () => {
    given.processor = except('responseHeaders', (_, stream) => stream.end())
    const body = 'some of it '.repeat(30_000)
    given.answer = (_, response) => response.setHeader('x-from', 'upstream').end(body)
    const response = await ask('plain')
    expect(response).toMatchObject({ status: 200, body })
    expect(response.headers['x-from']).toBe('upstream')
  })
})
