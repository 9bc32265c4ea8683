/** API keys and user names in other places than Authorization. */
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

const upstream = useUpstream('main', ({ path, headers }, response) => {
  response.end(JSON.stringify({ path, headers }))
})
const port = await freePort()
const pair = Buffer.from('ann:secret').toString('base64')
const places = {
  header: { header: { name: 'X-Key' } },
  scheme: { header: { name: 'Authorization', prefix: 'ApiKey ' } },
  query: { queryParameter: { name: 'api_key' } },
  cookie: { cookie: { name: 'key' } },
  expression: { expression: 'request.headers["x-pair"].split(":")[1]' },
}
const user = { name: 'x-user', value: 'default(apiKey.id, default(basicAuth.username, ""))' }

const running = useGateway(() => {
  const guarded = (name: string, traffic: object) => [
    httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
    policy(name, `HTTPRoute/${name}`, {
      traffic: { ...traffic, transformation: { request: { set: [user] } } },
    }),
  ]
  return {
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      secret('keys', { ann: 'key-of-ann' }),
      ...Object.entries(places).flatMap(([name, location]) => [
        ...guarded(`key-${name}`, {
          apiKeyAuthentication: { secretRef: { name: 'keys' }, location },
        }),
        ...guarded(`basic-${name}`, {
          basicAuthentication: { users: ['ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ='], location },
        }),
      ]),
    ],
  }
})

const sent = (name: string, credential: string) => ({
  path: name === 'query' ? `/x?a=1&api_key=${encodeURIComponent(credential)}` : '/x?a=1',
  headers: {
    ...(name === 'header' && { 'x-key': credential }),
    ...(name === 'scheme' && { authorization: `apikey ${credential}` }),
    ...(name === 'cookie' && { cookie: `a=1; key=${credential}` }),
    ...(name === 'expression' && { 'x-pair': `id:${credential}` }),
  } as Record<string, string>,
})

const ask = (host: string, { path = '/x', headers = {} as Record<string, string> } = {}) =>
  running.send(port, { host: hostOf(host), path, headers })

describe.each([
  ['key', 'key-of-ann'],
  ['basic', pair],
])('credentials of the kind %s', (kind, credential) => {
  it.each(Object.keys(places))('are found in the place %s, and removed from it', async (name) => {
    const host = `${kind}-${name}`
    const { status, body } = await ask(host, sent(name, credential))
    expect(status).toBe(200)
    const { path, headers } = JSON.parse(body) as {
      path: string
      headers: Record<string, string>
    }
    expect([path, headers['x-user']]).toEqual(['/x?a=1', 'ann'])
    if (name !== 'expression') expect(body).not.toContain(credential)
    if (name === 'cookie') expect(headers.cookie).toBe('a=1')
  })

  it.each(Object.keys(places))(
    'are refused with a challenge without those in the place %s',
    async (name) => {
      const scheme = kind === 'key' ? 'Bearer' : 'Basic'
      const usual = { authorization: `${scheme} ${credential}` }
      for (const request of [{}, { headers: usual }, sent(name, 'wrong')]) {
        const { status, headers } = await ask(`${kind}-${name}`, request)
        expect([status, headers['www-authenticate']]).toEqual([
          401,
          expect.stringMatching(/^Bearer|^Basic/),
        ])
      }
    },
  )
})
