import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'

const upstream = useUpstream()
const port = await freePort()
const running = useGateway(() => {
  const additionalOrigins = ['https://partner.example.com', 'http://dev.example.com:3000']
  return {
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      httpRoute('app', { rules: [{ backendRefs: [toBackend('main')] }] }),
      policy('csrf', 'HTTPRoute/app', { traffic: { csrf: { additionalOrigins } } }),
    ],
  }
})

const host = 'app.example.com'
async function status(
  method: string,
  headers: Record<string, string | string[]>,
  at = host,
): Promise<number> {
  return (await running.send(port, { method, host: at, headers })).status
}

const evil = { origin: 'https://evil.example.com' }

describe('csrf [Traffic.csrf]', () => {
  it.each(['GET', 'HEAD', 'OPTIONS'])('[CSRF.1] allows %s from anywhere', async (method) => {
    expect(await status(method, { ...evil, 'sec-fetch-site': 'cross-site' })).toBe(200)
  })

  it('[CSRF.2] allows a request with neither Sec-Fetch-Site nor Origin', async () => {
    expect(await status('POST', {})).toBe(200)
  })

  it.each([
    ['same-origin', evil, 200],
    ['none', {}, 200],
    ['cross-site', { origin: `http://${host}` }, 403],
    ['same-site', { origin: 'https://other.example.com' }, 403],
    ['cross-site', {}, 403],
    ['nonsense', {}, 403],
  ])('[CSRF.3] judges Sec-Fetch-Site %s with %o as %i', async (site, headers, expected) => {
    expect(await status('POST', { 'sec-fetch-site': site, ...headers })).toBe(expected)
  })

  it.each([
    [`http://${host}`, host, 200],
    [`https://${host}`, host, 200],
    [`http://${host.toUpperCase()}`, host, 200],
    [`http://${host}:80`, host, 200],
    [`http://${host}:8080`, `${host}:8080`, 200],
    [`http://${host}:8080`, host, 403],
    [`http://${host}.evil.com`, host, 403],
    ['https://evil.example.com', host, 403],
    ['null', host, 403],
    ['not an origin', host, 403],
  ])('[CSRF.3] compares Origin %s with Host %s: %i', async (origin, at, expected) => {
    expect(await status('POST', { origin }, at)).toBe(expected)
  })

  it.each([
    ['https://partner.example.com', 200],
    ['https://partner.example.com:443', 200],
    ['http://partner.example.com', 403],
    ['http://dev.example.com:3000', 200],
    ['http://dev.example.com', 403],
  ])(
    '[CSRF.additionalOrigins] compares scheme, host and port of %s: %i',
    async (origin, expected) => {
      expect(await status('DELETE', { origin })).toBe(expected)
      expect(await status('DELETE', { origin, 'sec-fetch-site': 'cross-site' })).toBe(expected)
    },
  )

  it.each([
    [{ 'sec-fetch-site': ['same-origin', 'cross-site'] }],
    [{ origin: [`http://${host}`, evil.origin] }],
    [{ 'sec-fetch-site': 'cross-site', origin: ['https://partner.example.com', evil.origin] }],
  ])('refuses several lines of which one does not allow: %j', async (headers) => {
    expect(await status('POST', headers)).toBe(403)
  })

  it('answers with the reason, and forwards nothing', async () => {
    const before = upstream.received.length
    const { body, headers } = await running.send(port, { method: 'POST', host, headers: evil })
    expect([body, headers['content-type']]).toEqual(['CSRF validation failed', 'text/plain'])
    expect(upstream.received).toHaveLength(before)
  })
})
