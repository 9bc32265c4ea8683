import { generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { answerAs } from './model-upstream.ts'
import { outline, runImport, useImport } from './rig.ts'

const port = await freePort()
const shop = useUpstream('shop')
const blue = useUpstream('blue')
const green = useUpstream('green')
const model = useUpstream('model', answerAs('model'))
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

const indent = (text: string) => text.trim().replaceAll('\n', '\n          ')

const config = () => `_format_version: "3.0"
services:
  - name: shop
    url: http://127.0.0.1:${shop.port}/api
    plugins:
      - name: request-transformer
        config:
          add: { headers: ["x-added: new", "x-kept: new"] }
          remove: { headers: [x-removed] }
      - name: response-transformer
        config: { append: { headers: ["x-answer:yes"] } }
    routes:
      - name: open
        paths: [/open]
      - name: keyed
        paths: [/keyed]
        plugins:
          - { name: key-auth, config: { key_names: [apikey] } }
          - { name: acl, config: { allow: [staff] } }
      - name: password
        paths: [/password]
        plugins: [{ name: basic-auth }]
      - name: token
        paths: [/token]
        plugins: [{ name: jwt }]
      - name: limited
        paths: [/limited]
        methods: [GET]
        strip_path: false
        plugins: [{ name: rate-limiting, config: { hour: 2, policy: local, limit_by: service } }]
      - name: limited-consumers
        paths: [/limited-consumers]
        plugins:
          - { name: key-auth, config: { key_names: [apikey] } }
          - { name: rate-limiting, config: { hour: 2, policy: local } }
      - name: limited-headers
        paths: [/limited-headers]
        plugins:
          - { name: rate-limiting, config: { hour: 1, limit_by: header, header_name: X-User } }
      - name: blocked
        paths: [/blocked]
        plugins: [{ name: ip-restriction, config: { deny: [127.0.0.0/8] } }]
      - name: allowed
        paths: [/allowed]
        plugins: [{ name: ip-restriction, config: { allow: [127.0.0.1] } }]
      - name: gone
        paths: [/gone]
        plugins: [{ name: request-termination, config: { status_code: 410, message: gone } }]
      - name: scripts
        paths: [/scripts]
        plugins: [{ name: cors, config: { origins: ["https://app.example.com"], methods: [GET] } }]
  - name: split
    host: colors
    routes: [{ name: split, hosts: [split.example.com] }]
  - name: chat
    url: http://localhost:32000
    routes:
      - name: chat
        paths: [/chat]
        plugins:
          - name: ai-proxy
            config:
              route_type: llm/v1/chat
              auth: { header_name: Authorization, header_value: Bearer sk-model }
              model:
                provider: openai
                name: gpt-4o
                options:
                  upstream_url: http://127.0.0.1:${model.port}/v1/chat/completions
                  max_tokens: 50
          - name: ai-prompt-guard
            config: { deny_patterns: ["forbidden.*"] }
          - name: ai-prompt-decorator
            config: { prompts: { prepend: [{ role: system, content: Be short. }] } }
upstreams:
  - name: colors
    targets:
      - { target: "127.0.0.1:${blue.port}", weight: 100 }
      - { target: "127.0.0.1:${green.port}", weight: 0 }
consumers:
  - username: ann
    keyauth_credentials: [{ key: key-of-ann }]
    acls: [{ group: staff }]
    basicauth_credentials: [{ username: ann, password: secret-of-ann }]
    jwt_secrets:
      - key: issuer-of-ann
        algorithm: RS256
        rsa_public_key: |
          ${indent(publicKey.export({ type: 'spki', format: 'pem' }).toString())}
  - username: bob
    keyauth_credentials: [{ key: key-of-bob }]
    acls: [{ group: guests }]
`

function token(issuer: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const exp = Math.floor(Date.now() / 1000) + 600
  const text = `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ iss: issuer, exp })}`
  return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`
}

describe('sluice import of a Kong configuration', () => {
  const { gateway, imported } = useImport(() => ({
    content: config(),
    args: ['--port', `${port}`],
  }))
  const get = (path: string, headers: Record<string, string> = {}) =>
    gateway.send(port, { path, headers })
  const received = async (path: string, headers: Record<string, string> = {}) =>
    JSON.parse((await get(path, headers)).body) as {
      path: string
      upstream: string
      headers: Record<string, string>
    }

  it('is detected, loses no protection, and is valid', () => {
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    const kinds = new Set(imported().findings.map(({ kind }) => kind))
    expect([...kinds].sort()).toEqual(['changed', 'secret'])
    const told = JSON.stringify(imported().findings) + imported().stderr
    expect(told).not.toMatch(/key-of|secret-of|sk-model/)
  })

  it('strips the path of the route and adds that of the service', async () => {
    expect(await received('/open/a?q=1')).toMatchObject({ upstream: 'shop', path: '/api/a?q=1' })
    expect(await received('/limited/a')).toMatchObject({ path: '/api/limited/a' })
    const post = await gateway.send(port, { method: 'POST', path: '/limited' })
    expect(post.status).toBe(404)
  })

  it('changes headers as the transformers do', async () => {
    const { headers } = await received('/open', { 'x-kept': 'old', 'x-removed': 'old' })
    expect(headers).toMatchObject({ 'x-added': 'new', 'x-kept': 'old' })
    expect(headers).not.toHaveProperty('x-removed')
    expect((await get('/open')).headers['x-answer']).toBe('yes')
  })

  it('asks for API keys in the header and the query of Kong, and for groups', async () => {
    expect((await get('/keyed')).status).toBe(401)
    expect((await get('/keyed', { apikey: 'wrong' })).status).toBe(401)
    expect((await get('/keyed', { apikey: 'key-of-ann' })).status).toBe(200)
    expect((await get('/keyed?apikey=key-of-ann')).status).toBe(200)
    expect((await get('/keyed', { apikey: 'key-of-bob' })).status).toBe(403)
  })

  it('asks for passwords and tokens', async () => {
    const basic = (text: string) => ({ authorization: `Basic ${btoa(text)}` })
    expect((await get('/password')).status).toBe(401)
    expect((await get('/password', basic('ann:wrong'))).status).toBe(401)
    expect((await get('/password', basic('ann:secret-of-ann'))).status).toBe(200)
    const bearer = (text: string) => ({ authorization: `Bearer ${text}` })
    expect((await get('/token')).status).toBe(401)
    expect((await get('/token', bearer(token('somewhere')))).status).toBe(401)
    expect((await get('/token', bearer(token('issuer-of-ann')))).status).toBe(200)
  })

  it('limits requests, restricts addresses, and answers by itself', async () => {
    const statuses = [await get('/limited'), await get('/limited'), await get('/limited')]
    expect(statuses.at(-1)?.status).toBe(429)
    expect((await get('/blocked')).status).toBe(403)
    expect((await get('/allowed')).status).toBe(200)
    expect(await get('/gone')).toMatchObject({ status: 410, body: '{"message":"gone"}' })
  })

  it('limits each consumer, and each value of a header or else each address', async () => {
    const statuses = async (path: string, all: readonly Record<string, string>[]) => {
      const found: number[] = []
      for (const headers of all) found.push((await get(path, headers)).status)
      return found
    }
    const [ann, bob] = [{ apikey: 'key-of-ann' }, { apikey: 'key-of-bob' }]
    expect(await statuses('/limited-consumers', [ann, ann, ann, bob])).toEqual([200, 200, 429, 200])
    const users: Record<string, string>[] = [
      { 'x-user': 'a' },
      { 'x-user': 'b' },
      { 'x-user': 'a' },
      {},
      {},
    ]
    expect(await statuses('/limited-headers', users)).toEqual([200, 200, 429, 200, 429])
  })

  it('answers cross-origin requests of the listed origins', async () => {
    const answer = (origin: string) => get('/scripts', { origin })
    const allowed = (await answer('https://app.example.com')).headers
    expect(allowed['access-control-allow-origin']).toBe('https://app.example.com')
    const refused = (await answer('https://evil.example.com')).headers
    expect(refused).not.toHaveProperty('access-control-allow-origin')
  })

  it('sends requests to the targets of an upstream by weight', async () => {
    const host = 'split.example.com'
    for (let count = 0; count < 5; count++) {
      const { body } = await gateway.send(port, { host })
      expect(JSON.parse(body)).toMatchObject({ upstream: 'blue' })
    }
  })

  it('sends chats to the model with key, defaults, prompts and guards', async () => {
    const chat = (content: string) =>
      gateway.send(port, {
        method: 'POST',
        path: '/chat',
        body: JSON.stringify({ messages: [{ role: 'user', content }] }),
      })
    expect((await chat('hello')).body).toContain('from model: hello')
    const { path, headers, body } = model.received.at(-1) as (typeof model.received)[number]
    expect({ path, key: headers.authorization }).toEqual({
      path: '/v1/chat/completions',
      key: 'Bearer sk-model',
    })
    expect(JSON.parse(body)).toMatchObject({ model: 'gpt-4o', max_tokens: 50 })
    expect(body).toContain('Be short.')
    expect(await chat('a forbidden word')).toMatchObject({ status: 400, body: 'bad request' })
  })
})

describe('what Kong has and Sluice lacks', () => {
  it('is reported with its line; unknown plugins count as protections', async () => {
    const result = await runImport(`_format_version: "3.0"
plugins:
  - { name: prometheus }
  - { name: my-own-plugin, config: { a: 1 } }
  - { name: rate-limiting, consumer: ann, config: { minute: 5 } }
services:
  - name: shop
    url: tcp://127.0.0.1:9000
    routes: [{ name: shop, paths: [/], unknown_field: 1 }]
`)
    expect(result.code).toBe(3)
    expect(outline(result)).toEqual([
      'lost: plugins[0]',
      'lost: services[0].routes[0]',
      'lost: services[0].routes[0].unknown_field',
      'lost: services[0].url',
      'protection: plugins[1]',
      'protection: plugins[2]',
    ])
    expect(result.findings.find(({ field }) => field === 'plugins[1]')).toMatchObject({ line: 4 })
  })
})
