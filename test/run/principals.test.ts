/** Who a request belongs to: one name for accounts and records, and one owner of what is stored. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import { keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import {
  aiBackend,
  budget,
  configMap,
  gateway,
  manifest,
  policy,
  routeByPath,
  secret,
  tlsSecret,
} from '../support/manifests.ts'
import { sendTls } from '../support/tls-client.ts'
import { startStoredVendor } from '../support/vendors/stored-vendor.ts'
import { waitFor } from '../support/wait-for.ts'

const issuers = ['https://one.example.com', 'https://two.example.com/realms/a#b']
const keys = await Promise.all(issuers.map((_, at) => signingKey(`key-${at}`)))
const authority = useAuthority()
const vendor = useFixture(() => startStoredVendor('one'))
const ports = await freePorts('http', 'https')
const key = join(useFolder('sluice-principals-'), 'session.key')
writeFileSync(key, 'a secret that seals ids')

const running = useGateway(() => {
  const jwtAuthentication = {
    mode: 'Optional',
    providers: issuers.map((issuer, at) => ({
      issuer,
      jwks: { inline: JSON.stringify(keySetOf(...keys.slice(at, at + 1))) },
    })),
  }
  const apiKeyAuthentication = {
    mode: 'Optional',
    secretSelector: { matchLabels: { team: 'red' } },
  }
  const basicAuthentication = { mode: 'Optional', users: ['ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ='] }
  const reached = (name: string, traffic: object) => [
    aiBackend(
      name,
      { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } },
      { auth: { key: 'gateway-key' } },
    ),
    routeByPath(name),
    policy(name, `HTTPRoute/${name}`, { traffic }),
  ]
  const each = 'identity.principal'
  return {
    args: ['--access-log', 'json', '--session-key-file', key, '--workers', '1'],
    manifests: {
      'all.yaml': manifest(
        gateway(0, {
          listeners: [
            { name: 'http', port: ports.http, protocol: 'HTTP' },
            {
              name: 'https',
              port: ports.https,
              protocol: 'HTTPS',
              tls: { certificateRefs: [{ name: 'tls' }] },
            },
          ],
          tls: {
            frontend: {
              default: {
                validation: {
                  caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'clients' }],
                  mode: 'AllowInsecureFallback',
                },
              },
            },
          },
        }),
        tlsSecret('tls', authority.issue(['a.example.com'])),
        configMap('clients', { 'ca.crt': authority.certificate }),
        secret('first', { ann: 'key-of-ann', shared: 'key-of-cid' }, { team: 'red' }),
        secret('second', { shared: 'key-of-dan' }, { team: 'red' }),
        ...reached('tokens', { jwtAuthentication }),
        ...reached('keys', { apiKeyAuthentication }),
        ...reached('basic', { basicAuthentication }),
        budget('each', 'HTTPRoute/tokens', {
          each,
          limit: { unit: 'Requests', amount: '2' },
          window: { type: 'Rolling', unit: 'Day' },
        }),
      ),
    },
  }
})

const tokenOf = (at: number, claims: Record<string, unknown>) => {
  const own = keys[at]
  if (own === undefined) throw new Error('no such key')
  return sign(own, { iss: issuers[at] ?? '', ...claims })
}

const clientOf = (name: string, credentials: string) =>
  new OpenAI({
    baseURL: `http://127.0.0.1:${ports.http}/${name}/v1`,
    apiKey: credentials,
    maxRetries: 0,
  })

/** The principal in the next line of the access log. */
async function principalOf(ask: () => Promise<unknown>): Promise<unknown> {
  const from = running.stdout.length
  await ask()
  const text = await waitFor('the line', () => {
    const lines = running.stdout.slice(from).split('\n').slice(0, -1)
    return lines.find((line) => line.includes('"scope":"request"'))
  })
  return (JSON.parse(text) as Record<string, unknown>)['identity.principal']
}

const ask = (name: string, authorization?: string) => () =>
  fetch(`http://127.0.0.1:${ports.http}/${name}/v1/models`, {
    headers: authorization === undefined ? {} : { authorization },
  })

describe('the principal', () => {
  it('has a name for each kind of credentials, which no other kind and no other issuer can have', async () => {
    const named = async (at: number, claims: Record<string, unknown>) =>
      principalOf(ask('tokens', `Bearer ${await tokenOf(at, claims)}`))
    expect(await named(0, { sub: 'ben' })).toBe('https://one.example.com#ben')
    expect(await named(1, { sub: 'ben' })).toBe('https://two.example.com/realms/a%23b#ben')
    expect(await named(0, { client_id: 'ben' })).toBe('https://one.example.com##ben')
    expect(await named(0, { sub: '#ben' })).toBe('https://one.example.com#%23ben')
    expect(await named(0, { sub: 'x'.repeat(300) })).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(await named(0, { scope: 'a' })).toBeUndefined()
    expect(await principalOf(ask('keys', 'Bearer key-of-ann'))).toBe('ann')
    const pair = Buffer.from('ann:secret').toString('base64')
    expect(await principalOf(ask('basic', `Basic ${pair}`))).toBe('basic#ann')
    expect(await principalOf(ask('basic'))).toBeUndefined()
    const { certificate: cert, key: own } = authority.issue(['spiffe://example.org/a'])
    const tls = { ca: authority.certificate, servername: 'a.example.com', cert, key: own }
    const certified = () => sendTls(ports.https, tls, { path: '/basic/v1/models' })
    expect(await principalOf(certified)).toBe('spiffe://example.org/a')
  })

  it('has a budget of its own, although another issuer has the same subject', async () => {
    const statuses = async (at: number) => {
      const token = await tokenOf(at, { sub: 'ann' })
      const found: number[] = []
      for (let count = 0; count < 3; count++) {
        const body = JSON.stringify({ model: 'gpt-5', input: 'Hello' })
        const url = `http://127.0.0.1:${ports.http}/tokens/v1/responses`
        const headers = { authorization: `Bearer ${token}` }
        found.push((await fetch(url, { method: 'POST', headers, body })).status)
      }
      return found
    }
    expect(await statuses(0)).toEqual([200, 200, 429])
    expect(await statuses(1)).toEqual([200, 200, 429])
  })

  it('owns what it stores: no equal subject of another issuer and no equal id of another Secret has it', async () => {
    const ownersOf = async (name: string, owner: string, other: string) => {
      const { id } = await clientOf(name, owner).responses.create({
        model: 'gpt-5',
        input: 'Hello',
      })
      expect((await clientOf(name, owner).responses.retrieve(id)).id).toBe(id)
      await expect(clientOf(name, other).responses.retrieve(id)).rejects.toMatchObject({
        status: 404,
      })
    }
    await ownersOf('keys', 'key-of-cid', 'key-of-dan')
    const [one, other] = [await tokenOf(0, { sub: 'cat' }), await tokenOf(1, { sub: 'cat' })]
    await ownersOf('tokens', one, other)
  })
})
