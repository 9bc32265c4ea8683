import { describe, expect, it } from 'vitest'
import { sign } from '../support/identity-provider.ts'
import { hostOf } from '../support/manifests.ts'
import { ask, grpc, issuer, key, port, text, upstream } from './ext-auth-rig.ts'

describe('extAuth over gRPC [Traffic.extAuth]', () => {
  it('[ExtAuth.grpc] [AgentExtAuthGRPC.contextExtensions] describes the request', async () => {
    const headers = { 'x-team': ['red', 'blue'], authorization: 'Bearer a' }
    expect((await ask('grpc', { method: 'PUT', headers, body: 'hi' })).status).toBe(200)
    const asked = grpc.asked.at(-1)
    expect(asked).toMatchObject({
      contextExtensions: { shop: 'one' },
      source: { address: { socketAddress: { address: '127.0.0.1' } } },
      destination: { address: { socketAddress: { address: '127.0.0.1', portValue: port } } },
      metadataContext: { filterMetadata: {} },
    })
    expect(asked?.request?.http).toMatchObject({
      method: 'PUT',
      path: '/cart?x=1',
      host: hostOf('grpc'),
      scheme: 'http',
      protocol: 'HTTP/1.1',
      body: '',
      headers: {
        ':path': '/cart?x=1',
        ':method': 'PUT',
        authorization: 'Bearer a',
        'x-team': 'red, blue',
      },
    })
  })

  it('sends the host name without a trailing dot, which could bypass a rule', async () => {
    expect((await ask('grpc', { host: `${hostOf('grpc')}.:81` })).status).toBe(200)
    const asked = grpc.asked.at(-1)?.request?.http
    expect([asked?.host, asked?.headers?.[':authority']]).toEqual([
      `${hostOf('grpc')}:81`,
      `${hostOf('grpc')}:81`,
    ])
    // The backend reads what the client wrote.
    expect(upstream.received.at(-1)?.headers.host).toBe(`${hostOf('grpc')}.:81`)
  })

  it('[AgentExtAuthGRPC.requestMetadata] sends values of expressions', async () => {
    expect((await ask('grpc-metadata')).status).toBe(200)
    expect(grpc.asked.at(-1)?.metadataContext?.filterMetadata).toEqual({
      'my.filter': { path: '/cart', n: 1 },
      simple: { value: 'text' },
    })
  })

  it('[AgentExtAuthGRPC.jwtMetadata] sends the claims of a verified token', async () => {
    const token = await sign(key, { iss: issuer, sub: 'ann', n: 7 })
    const headers = { authorization: `Bearer ${token}` }
    expect((await ask('grpc-jwt', { headers })).status).toBe(200)
    expect(grpc.asked.at(-1)?.metadataContext?.filterMetadata).toMatchObject({
      'envoy.filters.http.jwt_authn': { jwt_payload: { iss: issuer, sub: 'ann', n: 7 } },
    })
  })

  it('lets the service change the request and the response', async () => {
    grpc.answer({
      status: { code: 0 },
      httpResponse: {
        case: 'okResponse',
        value: {
          headers: [
            { header: { key: 'x-user', value: 'ann' } },
            { header: { key: 'x-team', value: 'blue' }, append: true },
            { header: { key: 'x-kept', value: 'no' }, appendAction: 1 },
            { header: { key: 'host', value: 'evil' } },
          ],
          headersToRemove: ['authorization', 'host', ':path'],
          responseHeadersToAdd: [{ header: { key: 'x-served', value: 'yes' } }],
          queryParametersToSet: [{ key: 'y', value: 'a b' }],
          queryParametersToRemove: ['x'],
        },
      },
      dynamicMetadata: { ok: true },
    })
    const headers = { 'x-user': 'root', 'x-team': 'red', 'x-kept': 'yes', authorization: 'a' }
    const response = await ask('grpc', { headers })
    expect([response.status, response.headers['x-served']]).toEqual([200, 'yes'])
    const received = upstream.received.at(-1)
    expect(received?.path).toBe('/cart?y=a%20b')
    expect(received?.headers).toMatchObject({
      host: hostOf('grpc'),
      'x-user': 'ann',
      'x-team': 'red, blue',
      'x-kept': 'yes',
    })
    expect(received?.headers).not.toHaveProperty('authorization')
  })

  it('shows dynamic metadata to later expressions', async () => {
    grpc.answer({ dynamicMetadata: { ok: false } })
    expect((await ask('grpc')).status).toBe(403)
  })

  it('refuses with the status, headers and body of the service', async () => {
    grpc.answer({
      status: { code: 16 },
      httpResponse: {
        case: 'deniedResponse',
        value: {
          status: { code: 401 },
          headers: [{ header: { key: 'x-why', value: 'nobody' } }],
          body: 'who are you?',
        },
      },
    })
    const { status, headers, body } = await ask('grpc')
    expect([status, headers['x-why'], body]).toEqual([401, 'nobody', 'who are you?'])
    grpc.answer({ status: { code: 7 } })
    expect(await ask('grpc')).toMatchObject({ status: 403, body: text })
  })

  it('sends bodies up to maxSize, and refuses larger ones', async () => {
    expect((await ask('grpc-body', { method: 'POST', body: '0123456789' })).status).toBe(200)
    expect(grpc.asked.at(-1)?.request?.http).toMatchObject({ body: '0123456789', size: 10n })
    const before = grpc.asked.length
    const { status } = await ask('grpc-body', { method: 'POST', body: '0123456789a' })
    expect([status, grpc.asked.length]).toEqual([413, before])
  })

  it('fails closed if the service fails, times out or is unreachable', async () => {
    grpc.answer(14)
    expect(await ask('grpc')).toMatchObject({ status: 403, body: text })
    expect((await ask('grpc-down')).status).toBe(403)
    grpc.answer('nothing')
    expect((await ask('grpc-impatient')).status).toBe(403)
  })

  it('fails closed if the answer has a field that the gateway does not know, and allows nothing else', async () => {
    const unknownField = [0x2a, 2, 0x0a, 0]
    const statusOk = [0x0a, 0]
    for (const bytes of [unknownField, [...statusOk, ...unknownField], [0xff, 0xff]]) {
      grpc.answer(Uint8Array.from(bytes))
      expect(await ask('grpc')).toMatchObject({ status: 403, body: text })
    }
    const okResponse = [0x1a, 0]
    for (const bytes of [[], statusOk, okResponse, [...okResponse, ...unknownField]]) {
      grpc.answer(Uint8Array.from(bytes))
      expect((await ask('grpc')).status).toBe(200)
    }
  })
})
