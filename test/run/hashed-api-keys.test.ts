/** API keys of which the gateway has only hashes, and with an end. */
import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  configMap,
  gateway,
  hostOf,
  httpRoute,
  manifest,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

const hashed = (key: string, more: object = {}) =>
  JSON.stringify({ keyHash: `sha256:${hash('sha256', key)}`, ...more })
const past = '2026-01-01T00:00:00Z'
const future = '2999-01-01T00:00:00Z'
const labels = { keys: 'yes' }
const byLabel = { configMapSelector: { matchLabels: labels } }
const apiKeys = (name: string, spec: object) =>
  policy(`keys-${name}`, `HTTPRoute/${name}`, { traffic: { apiKeyAuthentication: spec } })

const upstream = useUpstream()
const port = await freePort()
const earlyPort = await freePort()
const running = useGateway(() => {
  const route = (name: string) =>
    httpRoute(name, {
      hostnames: [hostOf(name)],
      rules: [{ backendRefs: [toBackend('main')] }],
    })
  return {
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      ...['hashed', 'teams', 'secret', 'nothing'].map(route),
      gateway(earlyPort, {}, 'early'),
      ...['a', 'b'].map((name) =>
        httpRoute(`early-${name}`, {
          parentRefs: [{ name: 'early' }],
          hostnames: [hostOf(name)],
          rules: [{ backendRefs: [toBackend('main')] }],
        }),
      ),
      policy('early-keys', 'Gateway/early', {
        traffic: { phase: 'PreRouting', apiKeyAuthentication: byLabel },
      }),
      apiKeys('hashed', byLabel),
      apiKeys('teams', byLabel),
      apiKeys('secret', { secretRef: { name: 'hashes' } }),
      apiKeys('nothing', { configMapSelector: { matchLabels: { keys: 'no' } } }),
      policy('search-only', 'HTTPRoute/teams', {
        traffic: {
          authorization: {
            policy: { matchExpressions: ['apiKey.team == "search" && apiKey.id == "ann"'] },
          },
        },
      }),
      configMap(
        'first',
        {
          ann: hashed('key-of-ann', { metadata: { team: 'search' } }),
          bob: hashed('key-of-bob', {
            previous: { keyHash: `sha256:${hash('sha256', 'old-key-of-bob')}`, expiresAt: future },
          }),
          cem: hashed('key-of-cem', {
            previous: { keyHash: `sha256:${hash('sha256', 'old-key-of-cem')}`, expiresAt: past },
          }),
          kim: hashed('key-of-kim', {
            previous: ['old', 'older'].map((age) => ({
              keyHash: `sha256:${hash('sha256', `${age}-key-of-kim`)}`,
              expiresAt: future,
            })),
          }),
          dan: hashed('key-of-dan', { expiresAt: past }),
          eve: hashed('key-of-eve', { disabled: true }),
          fay: hashed('key-of-fay', { expiresAt: future, disabled: false }),
          max: hashed('key-of-max', { allowedRoutes: ['default/hashed', 'default/early-a'] }),
          ned: hashed('key-of-ned', { allowedRoutes: ['default/*'] }),
          oda: hashed('key-of-oda', { allowedRoutes: [] }),
        },
        labels,
      ),
      configMap(
        'second',
        {
          again: hashed('key-of-ann', { metadata: { team: 'sales' } }),
          clear: 'key-of-gil',
          short: '{"keyHash":"sha256:abc"}',
          until: hashed('key-of-hal', { expiresAt: 'tomorrow' }),
          misspelt: hashed('key-of-ivy', { expires: past }),
          stars: hashed('key-of-jan', { allowedModels: ['a*b'] }),
          bare: hashed('key-of-kai', { allowedRoutes: ['hashed'] }),
          twice: hashed('key-of-leo', { disabled: true }).replace('}', ',"disabled":false}'),
          bob: hashed('key-of-another-bob'),
        },
        labels,
      ),
      secret('hashes', { ann: hashed('key-of-ann'), both: hashed('key-of-bob', { key: 'x' }) }),
    ],
  }
})

async function answerTo(name: string, key: string) {
  const authorization = `Bearer ${key}`
  return running.send(port, { host: hostOf(name), headers: { authorization } })
}
const statusOf = async (name: string, key: string) => (await answerTo(name, key)).status

describe('API keys by their hashes', () => {
  it('accepts a key whose hash a ConfigMap has, and not the hash itself', async () => {
    expect(await statusOf('hashed', 'key-of-ann')).toBe(200)
    expect(await statusOf('hashed', hash('sha256', 'key-of-ann'))).toBe(401)
    expect(await statusOf('hashed', `sha256:${hash('sha256', 'key-of-ann')}`)).toBe(401)
  })

  it('accepts a key whose hash a Secret has', async () => {
    expect(await statusOf('secret', 'key-of-ann')).toBe(200)
    expect(await statusOf('secret', 'key-of-bob')).toBe(401)
    const { message } = await running.condition('GatewayPolicy', 'keys-secret', 'Accepted', 'True')
    expect(message).toContain('entry both of Secret default/hashes has both "key" and "keyHash"')
  })

  it('accepts the key before a rotation until its end', async () => {
    expect(await statusOf('hashed', 'key-of-bob')).toBe(200)
    expect(await statusOf('hashed', 'old-key-of-bob')).toBe(200)
    expect(await statusOf('hashed', 'key-of-cem')).toBe(200)
    expect(await statusOf('hashed', 'old-key-of-cem')).toBe(401)
    for (const age of ['old-', 'older-', '']) {
      expect(await statusOf('hashed', `${age}key-of-kim`)).toBe(200)
    }
  })

  it('refuses expired and disabled keys, and says why', async () => {
    expect(await statusOf('hashed', 'key-of-fay')).toBe(200)
    expect((await answerTo('hashed', 'key-of-dan')).body).toBe(
      'api key authentication failure: the API key has expired',
    )
    expect((await answerTo('hashed', 'key-of-eve')).body).toBe(
      'api key authentication failure: the API key is disabled',
    )
  })

  it('shows the metadata and the id of a key to rules', async () => {
    expect(await statusOf('teams', 'key-of-ann')).toBe(200)
    expect(await statusOf('teams', 'key-of-bob')).toBe(403)
  })

  it('reports entries of ConfigMaps that are not keys, and refuses them only', async () => {
    const { message } = await running.condition('GatewayPolicy', 'keys-hashed', 'Accepted', 'True')
    for (const [name, text] of Object.entries({
      clear: 'has the key itself',
      short: '"keyHash" that is not',
      until: '"expiresAt" that is not a time',
      misspelt: 'has a member other than key, keyHash',
      stars: '"allowedModels" that is not a list',
      bare: '"allowedRoutes" that is not a list of routes as namespace/name',
      twice: 'has a member twice',
      bob: 'has the same apiKey.id as that of ConfigMap default/first',
    })) {
      expect(message).toContain(`entry ${name} of ConfigMap default/second`)
      expect(message).toContain(text)
    }
    for (const name of ['gil', 'hal', 'ivy', 'jan', 'kai']) {
      expect(await statusOf('hashed', `key-of-${name}`)).toBe(401)
    }
  })

  it('lets a key use only its routes, and names them in the refusal', async () => {
    expect(await statusOf('hashed', 'key-of-max')).toBe(200)
    expect(await answerTo('teams', 'key-of-max')).toMatchObject({
      status: 403,
      body: 'the API key may not use route default/teams; it may use default/hashed, default/early-a',
    })
    expect(await statusOf('hashed', 'key-of-ned')).toBe(200)
    expect((await answerTo('hashed', 'key-of-oda')).body).toMatch(/it may use none$/)
  })

  it('lets a key use only its routes if the key is checked before routing', async () => {
    const ask = async (name: string, key: string) => {
      const headers = { authorization: `Bearer ${key}` }
      return (await running.send(earlyPort, { host: hostOf(name), headers })).status
    }
    expect([await ask('a', 'key-of-max'), await ask('b', 'key-of-max')]).toEqual([200, 403])
    expect([await ask('a', 'key-of-ann'), await ask('b', 'key-of-ned')]).toEqual([200, 200])
  })

  it('refuses all requests if no ConfigMap has the labels', async () => {
    expect(await statusOf('nothing', 'key-of-ann')).toBe(401)
    const found = await running.condition('GatewayPolicy', 'keys-nothing', 'Accepted', 'False')
    expect(found.message).toContain('no ConfigMap has these labels')
  })

  it('follows a ConfigMap that changes', async () => {
    const later = (data: Record<string, string>) =>
      running.write('later.yaml', manifest(configMap('later', data, labels)))
    const headers = { authorization: 'Bearer key-of-zoe' }
    const request = { host: hostOf('hashed'), headers }
    later({ zoe: hashed('key-of-zoe') })
    await running.sendUntil(port, request, ({ status }) => status === 200)
    later({ zoe: hashed('key-of-zoe', { disabled: true }) })
    await running.sendUntil(port, request, ({ status }) => status === 401)
  })
})
