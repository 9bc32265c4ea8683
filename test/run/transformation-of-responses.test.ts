import { describe, expect, it } from 'vitest'
import type { ReceivedRequest } from '../support/upstream.ts'
import { send, upstream } from './transformation-rig.ts'

describe('transformed responses', () => {
  it('get changed headers and status', async () => {
    const { status, headers } = await send('response-head')
    expect([status, headers['x-answer'], headers['x-again'], headers.host]).toEqual([
      203,
      '200 to GET',
      '200 to GET',
      'of a response',
    ])
    expect(headers['set-cookie']).toEqual(['theirs=1', 'mine=1'])
    expect(headers).not.toHaveProperty('x-internal')
  })

  it('get another body', async () => {
    const { body, headers } = await send('response-body', { method: 'POST', body: 'hello' })
    expect(body).toBe('<hello>')
    expect(headers['content-length']).toBe('7')
    expect(Number(headers['x-length'])).toBeGreaterThan(100)
  })

  it('lose the content coding and digests of a replaced body', async () => {
    const coded = { 'content-encoding': 'gzip', 'content-digest': 'sha-256=:b2xk:' }
    const request = { path: '/coded', method: 'POST', body: 'x', headers: coded }
    const { body, headers } = await send('plain', request)
    expect(body).toBe('plain')
    expect(headers).toMatchObject({ digest: 'new' })
    expect(headers).not.toHaveProperty('content-encoding')
    expect(headers).not.toHaveProperty('content-md5')
    const received = upstream.received.at(-1)
    expect(received?.body.toString()).toBe('plain')
    expect(received?.headers).not.toHaveProperty('content-encoding')
    expect(received?.headers).not.toHaveProperty('content-digest')
  })

  it.each([
    ['404', 404],
    ['101', 200],
    ['700', 200],
    ['abc', 200],
  ])('an expression for the status %s gives %i', async (wanted, expected) => {
    expect((await send('response-status', { headers: { wanted } })).status).toBe(expected)
  })

  it('can read the body of the request as it was forwarded', async () => {
    const { body, headers } = await send('both', { method: 'POST', body: 'one' })
    expect((JSON.parse(body) as ReceivedRequest).body).toBe('new one')
    expect(headers['x-sent']).toBe('new one')
    const late = await send('late', { method: 'POST', body: 'two' })
    expect(late.headers['x-sent']).toBe('two')
    expect((JSON.parse(late.body) as ReceivedRequest).body).toBe('two')
  })

  it('over the limit arrive whole, without the header that needs their body', async () => {
    const { body, headers } = await send('large', { path: '/large', headers: { 'x-large': '1' } })
    expect(headers).not.toHaveProperty('x-large')
    expect(body).toHaveLength(3_000_000)
  })

  it('over the limit are errors if a new body is made from them', async () => {
    const { status, body } = await send('direct-body', { path: '/large' })
    expect([status, body]).toEqual([500, 'response transformation failed'])
  })

  it('are not buffered if no expression reads them', async () => {
    const { body, headers } = await send('streamed', { path: '/large' })
    expect([headers['x-code'], body.length]).toEqual(['200', 3_000_000])
  })

  it('of the gateway are changed too if the policy has been reached', async () => {
    const direct = await send('direct')
    expect([direct.status, direct.headers['x-code'], direct.body]).toEqual([418, '418', '[short]'])
    const refused = await send('refused')
    expect(refused.status).toBe(403)
    expect(refused.headers).not.toHaveProperty('x-code')
  })

  it('without a body stay without one', async () => {
    const none = await send('empty', { path: '/204' })
    expect([none.status, none.headers['x-code'], none.body]).toEqual([204, '204', ''])
    const head = await send('empty', { method: 'HEAD' })
    expect([head.status, head.headers['x-code'], head.body]).toEqual([200, '200', ''])
  })
})
