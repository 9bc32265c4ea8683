import { describe, expect, it } from 'vitest'
import type { Answer } from '../support/upstream.ts'
import { allow, ask, given, http, running, secure, text, upstream } from './ext-auth-rig.ts'

describe('extAuth over HTTP [Traffic.extAuth]', () => {
  it('[ExtAuth.http] [ExtAuth.backendRef] sends only method, path and Authorization, and 200 allows', async () => {
    const headers = { authorization: 'Bearer a', cookie: 'a=b', 'x-other': '1' }
    const { status } = await ask('plain', { method: 'PUT', headers, body: 'hello' })
    expect(status).toBe(200)
    const asked = http.received.at(-1)
    expect(asked).toMatchObject({ method: 'PUT', path: '/cart?x=1', body: '' })
    expect(asked?.headers).toMatchObject({ authorization: 'Bearer a' })
    expect(Object.keys(asked?.headers ?? {})).not.toContain('cookie')
    expect(Object.keys(asked?.headers ?? {})).not.toContain('x-other')
    expect(upstream.received.at(-1)?.body).toBe('hello')
    expect((await ask('service')).status).toBe(200)
  })

  it('[error.6] refuses with the answer of the service', async () => {
    given.answer = (_, response) => {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="a"', 'x-why': 'nobody' })
      response.end('who are you?')
    }
    const before = upstream.received.length
    const { status, headers, body } = await ask('plain')
    expect([status, body]).toEqual([401, 'who are you?'])
    expect(headers).toMatchObject({ 'www-authenticate': 'Basic realm="a"', 'x-why': 'nobody' })
    expect(upstream.received).toHaveLength(before)
  })

  it.each([201, 204, 206, 500, 503])(
    'refuses the request if the service answers %i',
    async (status) => {
      given.answer = (_, response) => response.writeHead(status).end()
      const before = upstream.received.length
      expect(await ask('plain')).toMatchObject({ status: 403, body: text })
      expect(upstream.received).toHaveLength(before)
    },
  )

  it('[error.6] [AgentExtAuthHTTP.redirect] redirects refused clients', async () => {
    given.answer = (_, response) => response.writeHead(403, { 'x-why': 'nobody' }).end('no')
    const { status, headers, body } = await ask('redirect')
    expect([status, headers.location, body]).toEqual([302, '/sign-in?to=/cart', ''])
    expect(await ask('bad-redirect')).toMatchObject({ status: 403, body: text })
    given.answer = allow
    expect((await ask('redirect')).status).toBe(200)
  })

  it('[AgentExtAuthHTTP.path] sends its request to the path of an expression', async () => {
    expect((await ask('path')).status).toBe(200)
    expect(http.received.at(-1)?.path).toBe('/check/cart')
    expect(await ask('bad-path')).toMatchObject({ status: 403, body: text })
  })

  it('[AgentExtAuthHTTP.allowedRequestHeaders] [AgentExtAuthHTTP.addRequestHeaders] sends the headers that the policy names', async () => {
    const headers = {
      authorization: 'Bearer a',
      'x-team': ['red', 'blue'],
      cookie: 'a=b',
      'x-from': 'forged',
    }
    expect((await ask('headers', { headers })).status).toBe(200)
    const sent = http.received.at(-1)?.headers
    expect(sent).toMatchObject({
      authorization: 'Bearer a',
      'x-team': 'red, blue',
      cookie: 'a=b',
      'x-from': '127.0.0.1',
    })
    expect(sent).not.toHaveProperty('x-none')
  })

  it('[AgentExtAuthHTTP.allowedResponseHeaders] copies headers of the answer, and replaces those of the client', async () => {
    given.answer = (_, response) => {
      response.setHeader('x-user', 'ann')
      response.setHeader('x-secret', 'kept')
      response.end()
    }
    const headers = { 'x-user': 'root', 'x-roles': 'admin', 'x-team': 'red' }
    expect((await ask('headers', { headers })).status).toBe(200)
    const received = upstream.received.at(-1)?.headers
    expect(received).toMatchObject({ 'x-user': 'ann', 'x-team': 'red' })
    expect(received).not.toHaveProperty('x-secret')
    expect(received).not.toHaveProperty('x-roles')
  })

  it('[AgentExtAuthHTTP.responseMetadata] exposes response metadata to later expressions', async () => {
    const says = (user: string): Answer => {
      return (_, response) => response.setHeader('x-tier', 'gold').end(JSON.stringify({ user }))
    }
    given.answer = says('ann')
    expect((await ask('metadata')).status).toBe(200)
    given.answer = says('bob')
    expect((await ask('metadata')).status).toBe(403)
    given.answer = allow
    expect((await ask('metadata')).status).toBe(403)
  })

  it('[ExtAuth.forwardBody] [ExtAuthBody.maxSize] [error.7] sends bodies up to maxSize, and refuses larger ones', async () => {
    expect((await ask('body', { method: 'POST', body: '0123456789' })).status).toBe(200)
    const asked = http.received.at(-1)
    expect([asked?.body, asked?.headers['x-envoy-auth-partial-body']]).toEqual([
      '0123456789',
      'false',
    ])
    expect(upstream.received.at(-1)?.body).toBe('0123456789')
    const before = [http.received.length, upstream.received.length]
    const large = { method: 'POST', body: '0123456789a' }
    expect(await ask('body', large)).toMatchObject({ status: 413, body: text })
    const chunked = { ...large, headers: { 'transfer-encoding': 'chunked' } }
    expect((await ask('body', chunked)).status).toBe(413)
    expect([http.received.length, upstream.received.length]).toEqual(before)
  })

  it('fails closed if the service is unreachable, times out or has an untrusted certificate', async () => {
    expect(await ask('down')).toMatchObject({ status: 403, body: text })
    expect(await ask('distrusted')).toMatchObject({ status: 403, body: text })
    given.answer = () => undefined
    expect(await ask('impatient')).toMatchObject({ status: 403, body: text })
    const refused = await ask('down', { headers: { 'content-type': 'application/grpc' } })
    expect([refused.status, refused.headers['grpc-status']]).toEqual([200, '7'])
  })

  it('connects by TLS if the policies of the backend say so', async () => {
    expect((await ask('secure')).status).toBe(200)
    expect(secure.received.at(-1)?.tls?.serverName).toBe('auth.example.com')
  })

  it('[ExtAuth.exactlyOneOf] refuses all requests and reports the reason if it cannot be enforced', async () => {
    const messageOf = async (name: string) =>
      (await running.condition('GatewayPolicy', name, 'Accepted', 'False')).message
    expect(await messageOf('nowhere')).toContain(
      'backendRef: GatewayBackend default/nowhere does not exist',
    )
    expect(await messageOf('both')).toContain('exactly one of grpc, http')
    expect(await messageOf('bad-name')).toContain('http.allowedRequestHeaders[0]')
    for (const name of ['nowhere', 'both', 'bad-name']) {
      expect((await ask(name)).status).toBe(500)
    }
  })
})
