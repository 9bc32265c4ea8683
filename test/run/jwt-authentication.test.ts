import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestResponse } from '../support/http-client.ts'
import {
  inSeconds,
  keySetOf,
  type SigningKey,
  sign,
  signingKey,
} from '../support/identity-provider.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

const issuer = 'https://idp.example.com'
const otherIssuer = 'https://other.example.com'
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'ES256', 'ES384', 'ES512', 'EdDSA']

const rules = [{ backendRefs: [toBackend('main')] }]
const guarded = (name: string, spec: Record<string, unknown>) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules }),
  policy(name, `HTTPRoute/${name}`, { traffic: { jwtAuthentication: spec } }),
]
const inline = (value: unknown) => ({ inline: JSON.stringify(value) })

const upstream = useUpstream()
const port = await freePort()
const key = await signingKey('one')
const otherKey = await signingKey('two')
const unpublished = await signingKey('one')
const byAlgorithm = new Map<string, SigningKey>()
for (const algorithm of algorithms) {
  byAlgorithm.set(algorithm, await signingKey(algorithm, algorithm))
}
const running = useGateway(() => {
  const provider = { issuer, jwks: inline(keySetOf(key)) }
  const { kid: _, ...withoutId } = key.jwk
  const { alg: _alg, ...withoutAlgorithm } = key.jwk
  return {
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      ...guarded('strict', { providers: [provider] }),
      ...guarded('optional', { mode: 'Optional', providers: [provider] }),
      ...guarded('permissive', { mode: 'Permissive', providers: [provider] }),
      ...guarded('audience', { providers: [{ ...provider, audiences: ['app', 'api'] }] }),
      ...guarded('several', {
        providers: [
          provider,
          { issuer: otherIssuer, jwks: inline(keySetOf(otherKey)) },
          { issuer: 'https://third.example.com', jwks: { inline: 'no JSON' } },
        ],
      }),
      ...guarded('algorithms', {
        providers: [{ issuer, jwks: inline(keySetOf(...byAlgorithm.values())) }],
      }),
      ...guarded('nameless', { providers: [{ issuer, jwks: inline({ keys: [withoutId] }) }] }),
      ...guarded('open-key', {
        providers: [{ issuer, jwks: inline({ keys: [withoutAlgorithm] }) }],
      }),
      ...guarded('unreadable', { providers: [{ issuer, jwks: { inline: '{"keys": 1}' } }] }),
      ...guarded('unusable', {
        providers: [{ issuer, jwks: inline({ keys: [{ kty: 'EC', crv: 'P-192' }] }) }],
      }),
      ...guarded('symmetric', {
        providers: [{ issuer, jwks: inline({ keys: [{ kty: 'oct', k: 'c2VjcmV0LWtleQ' }] }) }],
      }),
      ...guarded('rules', { mode: 'Permissive', providers: [provider] }),
      policy('rules-too', 'HTTPRoute/rules', {
        traffic: {
          authorization: { policy: { matchExpressions: ['jwt.group == "sales"'] } },
        },
      }),
    ],
  }
})

function ask(name: string, authorization?: string | string[]): Promise<TestResponse> {
  const headers: Record<string, string | string[]> = authorization ? { authorization } : {}
  return running.send(port, { host: hostOf(name), headers })
}

const show = (name: string, token: string) => ask(name, `Bearer ${token}`)
const status = async (name: string, token: string) => (await show(name, token)).status
const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

describe('jwtAuthentication [Traffic.jwtAuthentication]', () => {
  it('[JWTAuthentication=Strict] [JWTAuthentication.mode] [JWKS.inline] refuses a request without a token and names the issuer', async () => {
    expect(await status('strict', await sign(key, { iss: issuer }))).toBe(200)
    expect(upstream.received.at(-1)?.headers).not.toHaveProperty('authorization')
    const { status: refused, body, headers } = await ask('strict')
    expect([refused, body]).toEqual([401, 'authentication failure: no bearer token found'])
    expect(headers['www-authenticate']).toBe('Bearer realm="Restricted"')
    expect((await ask('strict', 'Basic dTpw')).body).toContain('no bearer token found')
  })

  it('[JWTAuthentication=Optional] mode Optional validates a token if there is one', async () => {
    expect((await ask('optional')).status).toBe(200)
    expect(await status('optional', await sign(key, { iss: issuer }))).toBe(200)
    expect(await status('optional', await sign(unpublished, { iss: issuer }))).toBe(401)
  })

  it('[JWTAuthentication=Optional] finds a token after any white space, so that no backend reads it unverified', async () => {
    const good = await sign(key, { iss: issuer })
    const bad = await sign(unpublished, { iss: issuer })
    for (const space of [' ', '\t', '   ', ' \t ', '\xa0', '\x85']) {
      expect((await ask('optional', `Bearer${space}${bad}`)).status).toBe(401)
      expect((await ask('optional', `bearer${space}${good}`)).status).toBe(200)
      expect(upstream.received.at(-1)?.headers).not.toHaveProperty('authorization')
    }
  })

  it('[JWTAuthentication=Permissive] mode Permissive refuses no request, and exposes only valid claims', async () => {
    const bad = await sign(unpublished, { iss: issuer, group: 'sales' })
    expect((await ask('permissive')).status).toBe(200)
    expect(await status('permissive', bad)).toBe(200)
    expect(upstream.received.at(-1)?.headers.authorization).toBe(`Bearer ${bad}`)
    expect(await status('rules', await sign(key, { iss: issuer, group: 'sales' }))).toBe(200)
    expect(await status('rules', bad)).toBe(403)
  })

  it('[Authorization.order] exposes the claims to authorization rules', async () => {
    expect(await status('rules', await sign(key, { iss: issuer, group: 'sales' }))).toBe(200)
    expect(await status('rules', await sign(key, { iss: issuer, group: 'staff' }))).toBe(403)
  })

  it('[JWTProvider.issuer] compares the issuer', async () => {
    for (const iss of [`${issuer}/`, otherIssuer, '']) {
      expect(await status('strict', await sign(key, { iss }))).toBe(401)
    }
    expect(await status('strict', await sign(key, {}))).toBe(401)
  })

  it('[JWTProvider.audiences] requires one of the configured audiences', async () => {
    const claims = { iss: issuer }
    expect(await status('audience', await sign(key, { ...claims, aud: 'api' }))).toBe(200)
    expect(await status('audience', await sign(key, { ...claims, aud: ['x', 'app'] }))).toBe(200)
    expect(await status('audience', await sign(key, { ...claims, aud: 'other' }))).toBe(401)
    expect(await status('audience', await sign(key, claims))).toBe(401)
    expect(await status('strict', await sign(key, { ...claims, aud: 'other' }))).toBe(200)
  })

  it('[JWTAuthentication.providers] keeps the keys of issuers apart', async () => {
    expect(await status('several', await sign(key, { iss: issuer }))).toBe(200)
    expect(await status('several', await sign(otherKey, { iss: otherIssuer }))).toBe(200)
    expect(await status('several', await sign(otherKey, { iss: issuer }))).toBe(401)
    expect(await status('several', await sign(key, { iss: otherIssuer }))).toBe(401)
    const { message } = await running.condition('GatewayPolicy', 'several', 'Accepted', 'True')
    expect(message).toContain('providers[2].jwks.inline: the key set is not JSON')
  })

  it.each(algorithms)('verifies %s', async (algorithm) => {
    const signer = byAlgorithm.get(algorithm) as SigningKey
    const token = await sign(signer, { iss: issuer })
    expect(await status('algorithms', token)).toBe(200)
    // A second time from memory, and with another payload not at all.
    expect(await status('algorithms', token)).toBe(200)
    const [header, , signature] = token.split('.')
    const payload = encode({ iss: issuer, exp: inSeconds(300), admin: true })
    expect(await status('algorithms', `${header}.${payload}.${signature}`)).toBe(401)
  })

  it('accepts a key without an id if it is the only one that fits', async () => {
    const token = await sign(key, { iss: issuer }, { kid: undefined })
    expect(await status('nameless', token)).toBe(200)
    expect(await status('strict', token)).toBe(200)
    expect((await show('algorithms', token)).status).toBe(401)
  })

  it('restricts a key to its algorithm, or to its algorithm family if it names none', async () => {
    const asPs256 = { ...(byAlgorithm.get('PS256') as SigningKey), kid: 'one' }
    const ps = await sign(asPs256, { iss: issuer })
    expect((await show('strict', ps)).body).toContain('an algorithm that its key does not allow')
    expect(await status('open-key', await sign(key, { iss: issuer }))).toBe(200)
  })
})

describe('invalid tokens', () => {
  const now = () => ({ iss: issuer, exp: inSeconds(300) })

  it.each([
    [-30, 200],
    [-61, 401],
    [-3600, 401],
  ])(
    'allows a minute of clock skew: exp %i seconds from now gives %i',
    async (seconds, expected) => {
      const token = await sign(key, { iss: issuer, exp: inSeconds(seconds) })
      expect(await status('strict', token)).toBe(expected)
    },
  )

  it('requires a numeric exp, and an nbf that is not in the future', async () => {
    const never = await sign(key, { iss: issuer, exp: undefined })
    expect(await status('strict', never)).toBe(401)
    expect(await status('strict', await sign(key, { ...now(), nbf: inSeconds(30) }))).toBe(200)
    const early = await show('strict', await sign(key, { ...now(), nbf: inSeconds(120) }))
    expect([early.status, early.body]).toEqual([
      401,
      'authentication failure: the token is not valid yet',
    ])
  })

  it.each(['none', 'None', 'NONE', ''])('refuses alg %j', async (alg) => {
    for (const signature of ['', encode('x')]) {
      const token = `${encode({ alg, kid: 'one' })}.${encode(now())}.${signature}`
      expect(await status('strict', token)).toBe(401)
      expect(await status('open-key', token)).toBe(401)
    }
  })

  it('refuses the public key as the secret of HS256', async () => {
    for (const secret of [JSON.stringify(key.jwk), key.jwk.n ?? '']) {
      const signed = `${encode({ alg: 'HS256', kid: 'one' })}.${encode(now())}`
      const mac = createHmac('sha256', secret).update(signed).digest('base64url')
      expect(await status('strict', `${signed}.${mac}`)).toBe(401)
      expect(await status('open-key', `${signed}.${mac}`)).toBe(401)
    }
  })

  it.each([
    '../../dev/null',
    "' or 1=1 --",
    '__proto__',
    'toString',
    '',
    'ONE',
    'https://evil/keys',
  ])('finds no key by the id %j', async (kid) => {
    expect(await status('strict', await sign(key, now(), { kid }))).toBe(401)
  })

  it('ignores keys that the token contains or refers to', async () => {
    const header = { jwk: unpublished.jwk, jku: 'https://evil.example.com/keys', x5u: 'x' }
    expect(await status('strict', await sign(unpublished, now(), header as never))).toBe(401)
  })

  async function signed(header: string, payload: string): Promise<string> {
    const text = `${encode(header)}.${encode(payload)}`
    const bytes = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', key.privateKey, Buffer.from(text))
    return `${text}.${Buffer.from(bytes).toString('base64url')}`
  }
  const header = '{"alg":"RS256","kid":"one"}'

  it('accepts the tokens that this test signs by hand', async () => {
    expect(await status('strict', await signed(header, JSON.stringify(now())))).toBe(200)
  })

  it.each([
    ['a repeated claim', header, '{"iss":"https://idp.example.com","exp":9e9,"sub":"a","sub":"b"}'],
    [
      'a repeated nested claim',
      header,
      '{"iss":"https://idp.example.com","exp":9e9,"a":{"b":1,"\\u0062":2}}',
    ],
    [
      'a repeated header parameter',
      '{"alg":"RS256","kid":"two","kid":"one"}',
      '{"iss":"https://idp.example.com","exp":9e9}',
    ],
    [
      'a critical extension',
      '{"alg":"RS256","kid":"one","crit":["exp"],"exp":1}',
      '{"iss":"https://idp.example.com","exp":9e9}',
    ],
    [
      'a payload that is not encoded',
      '{"alg":"RS256","kid":"one","b64":false}',
      '{"iss":"https://idp.example.com","exp":9e9}',
    ],
    [
      'a key id that is not a string',
      '{"alg":"RS256","kid":["one"]}',
      '{"iss":"https://idp.example.com","exp":9e9}',
    ],
    ['an exp that is a string', header, '{"iss":"https://idp.example.com","exp":"9000000000"}'],
    ['an exp above the range of numbers', header, '{"iss":"https://idp.example.com","exp":1e999}'],
    ['an nbf that is a string', header, '{"iss":"https://idp.example.com","exp":9e9,"nbf":"1"}'],
    ['claims that are a list', header, '["https://idp.example.com"]'],
    ['claims that are not JSON', header, 'iss=https://idp.example.com'],
  ])('refuses %s, even if its signature is valid', async (_, head, payload) => {
    expect(await status('strict', await signed(head, payload))).toBe(401)
  })

  it('refuses malformed and oversized tokens', async () => {
    const good = await sign(key, now())
    const [first, second, third] = good.split('.')
    for (const token of [
      'x',
      '..',
      `${first}.${second}`,
      `${good}.`,
      `${good}=`,
      `${first}.${second}.${third}.${third}.${third}`,
      `.${second}.${third}`,
    ]) {
      expect(await status('strict', token)).toBe(401)
    }
    const huge = await sign(key, { ...now(), padding: 'x'.repeat(12_500) })
    expect([401, 431]).toContain(await status('strict', huge))
  })

  it('refuses a request with two tokens, even if one is valid', async () => {
    const good = `Bearer ${await sign(key, now())}`
    expect((await ask('strict', [good, 'Bearer x'])).status).toBe(401)
    expect((await ask('permissive', [good, 'Bearer x'])).status).toBe(200)
  })
})

describe('key sets that cannot be used', () => {
  it.each([
    ['unreadable', 'providers[0].jwks.inline: the key set is no object with a list "keys"'],
    ['unusable', 'keys[0] is of a type that is not supported'],
  ])('refuses all requests and reports it if the key set is %s', async (name, text) => {
    expect(await status(name, await sign(key, { iss: issuer }))).toBe(401)
    const { message } = await running.condition('GatewayPolicy', name, 'Accepted', 'False')
    expect(message).toContain(text)
  })

  it('does not write secret keys to the event log', async () => {
    const { message } = await running.condition('GatewayPolicy', 'symmetric', 'Accepted', 'False')
    expect(message).toContain('must hold public keys only')
    expect((await ask('symmetric')).status).toBe(500)
  })
})
