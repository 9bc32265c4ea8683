import Anthropic from '@anthropic-ai/sdk'
import { describe, expect, it } from 'vitest'
import { openStream, sendEvent } from '../support/vendors/vendor.ts'
import { chunk, failsA } from '../support/vendors/vendor-a.ts'
import { failsC, sayPiece, startMessage } from '../support/vendors/vendor-c.ts'
import { waitFor } from '../support/wait-for.ts'
import { a, anthropic, ask, askC, base, c, collect, openai } from './models-rig.ts'

describe('errors of model requests', () => {
  it('of the vendor come in the format of the client, with their status', async () => {
    c.next.push(failsC(404, 'not_found_error', 'no such model'))
    const missing = openai('c').chat.completions.create(ask)
    await expect(missing).rejects.toMatchObject({ status: 404 })
    await expect(missing).rejects.toThrow(/no such model/)
    a.next.push(failsA(401, 'bad key'))
    const denied = anthropic('a').messages.create(askC)
    await expect(denied).rejects.toBeInstanceOf(Anthropic.AuthenticationError)
    await expect(denied).rejects.toThrow(/bad key/)
  })

  it('of the client come in its format', async () => {
    const post = (name: string, path: string, body: string, headers = {}) =>
      fetch(`${base(name)}${path}`, { method: 'POST', body, headers })
    const noModel = await post('a', '/v1/chat/completions', '{"messages":[]}')
    expect(noModel.status).toBe(400)
    expect(await noModel.json()).toMatchObject({
      error: { message: expect.stringMatching(/model/) },
    })
    const noJson = await post('c', '/v1/messages', 'hello')
    expect(noJson.status).toBe(400)
    expect(await noJson.json()).toMatchObject({ type: 'error' })
    const long = await post('a', '/v1/chat/completions', 'x'.repeat(2_097_153))
    expect(long.status).toBe(413)
    const coded = await post('a', '/v1/chat/completions', '{}', { 'content-encoding': 'sausage' })
    expect(coded.status).toBe(415)
    expect(a.calls.length + c.calls.length).toBe(0)
  })

  it('replace unreadable answers', async () => {
    c.next.push((_, response) => response.end('<html>'))
    await expect(openai('c').chat.completions.create(ask)).rejects.toMatchObject({ status: 502 })
    a.next.push((_, response) => response.end('{"object":"list"}'))
    await expect(anthropic('a').messages.create(askC)).rejects.toMatchObject({ status: 502 })
  })

  it('end a stream that the vendor cuts off', async () => {
    a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, chunk('m', { content: 'Hel' }))
      response.write('data: {"half', () => response.destroy())
    })
    const native = await openai('a').chat.completions.create({ ...ask, stream: true })
    await expect(collect(native)).rejects.toThrow(/cut off/)
    c.next.push((_, response) => {
      startMessage('m', response)
      sayPiece('Hel', response)
      response.write('event: conte', () => response.destroy())
    })
    const translated = await openai('c').chat.completions.create({ ...ask, stream: true })
    await expect(collect(translated)).rejects.toThrow(/cut off/)
    a.next.push((_, response) => {
      openStream(response)
      sendEvent(response, chunk('m', { content: 'Hel' }))
      response.end()
    })
    const stream = anthropic('a').messages.stream(askC)
    await expect(stream.finalMessage()).rejects.toThrow(/cut off/)
  })

  it("cancel the vendor's work if the client disconnects", async () => {
    c.next.push((_, response) => {
      startMessage('m', response)
      sayPiece('Hel', response)
    })
    const stream = await openai('c').chat.completions.create({ ...ask, stream: true })
    for await (const _ of stream) break
    stream.controller.abort()
    await waitFor('the vendor to be left', () => c.aborted === 1)
  })
})
