import { connect } from 'node:net'
import { hashSync } from 'bcryptjs'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestResponse } from '../support/http-client.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  manifest,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

/** As `htpasswd -n`, `openssl passwd` and crypt(3) write them; the password of each is `pw`. */
const hashes = {
  apr1: '$apr1$abcdefgh$5VEbMkemELfbhC5ck.U.z1',
  bcrypt: '$2y$05$abcdefghijklmnopqrstuuHIrMEWpUCQe2YqFR3sXwQ75u4od..9q',
  crypt: 'abzlUXK5ed5rs',
  sha1: '{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=',
}

/** The cost makes a check take about a tenth of a second. */
const slowHash = hashSync('pw', 10)

const rules = [{ backendRefs: [toBackend('main')] }]
const guarded = (name: string, spec: Record<string, unknown>) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules }),
  policy(name, `HTTPRoute/${name}`, { traffic: { basicAuthentication: spec } }),
]
const users = Object.entries(hashes).map(([user, hash]) => `${user}:${hash}`)

const upstream = useUpstream()
const port = await freePort()
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    ...guarded('users', { users, realm: 'the "back" office' }),
    ...guarded('known', { users }),
    policy('only-bcrypt', 'HTTPRoute/known', {
      traffic: {
        authorization: { policy: { matchExpressions: ['basicAuth.username == "bcrypt"'] } },
      },
    }),
    ...guarded('optional', { users, mode: 'Optional' }),
    ...guarded('file', { secretRef: { name: 'people' } }),
    secret('people', {
      '.htaccess': `# staff\nann:${hashes.bcrypt}\n\nplain:secret-password\nann:${hashes.sha1}\n`,
    }),
    ...guarded('named-entry', { secretRef: { name: 'misnamed', key: 'htpasswd' } }),
    ...guarded('absent', { secretRef: { name: 'nobody' } }),
    ...guarded('misnamed', { secretRef: { name: 'misnamed' } }),
    secret('misnamed', { htpasswd: `ann:${hashes.sha1}` }),
    ...guarded('slow', { users: [`ann:${slowHash}`] }),
    ...guarded('plain', { users: ['ann:secret-password'] }),
  ],
}))

type Headers = Record<string, string | string[]>

function ask(name: string, headers: Headers = {}): Promise<TestResponse> {
  return running.send(port, { host: hostOf(name), headers })
}

const encode = (text: string | Buffer) => Buffer.from(text).toString('base64')
const login = (name: string, user: string, password: string) =>
  ask(name, { authorization: `Basic ${encode(`${user}:${password}`)}` })

describe('basicAuthentication [Traffic.basicAuthentication]', () => {
  it('[BasicAuthentication=Strict] [BasicAuthentication.mode] [error.8] refuses a request without credentials', async () => {
    const { status, body, headers } = await ask('file')
    expect([status, body]).toEqual([
      401,
      'basic authentication failure: no basic authentication credentials found',
    ])
    expect(headers['content-type']).toBe('text/plain')
  })

  it('[BasicAuthentication.challenge] [BasicAuthentication.realm] names the realm in the challenge', async () => {
    expect((await ask('file')).headers['www-authenticate']).toBe('Basic realm="Restricted"')
    const { headers } = await login('users', 'bcrypt', 'wrong')
    expect(headers['www-authenticate']).toBe('Basic realm="the \\"back\\" office"')
  })

  it.each([
    ['[BasicAuthentication.hash.md5]', 'apr1'],
    ['[BasicAuthentication.hash.bcrypt]', 'bcrypt'],
    ['[BasicAuthentication.hash.crypt]', 'crypt'],
    ['[BasicAuthentication.hash.sha1]', 'sha1'],
  ])('[BasicAuthentication.users] %s checks a hash of %s', async (_, user) => {
    expect((await login('users', user, 'pw')).status).toBe(200)
    expect((await login('users', user, 'pw')).status).toBe(200)
    expect((await login('users', user, 'pwx')).status).toBe(401)
    expect((await login('users', user, '')).status).toBe(401)
  })

  it('removes valid credentials from the forwarded request', async () => {
    await login('users', 'sha1', 'pw')
    expect(upstream.received.at(-1)?.headers).not.toHaveProperty('authorization')
  })

  it('[Authorization.order] exposes the user name to authorization rules', async () => {
    expect((await login('known', 'bcrypt', 'pw')).status).toBe(200)
    expect((await login('known', 'apr1', 'pw')).status).toBe(403)
  })

  it.each([
    ['an unknown user', { authorization: `Basic ${encode('nobody:pw')}` }],
    ['a user name in another case', { authorization: `Basic ${encode('SHA1:pw')}` }],
    ['credentials without a colon', { authorization: `Basic ${encode('sha1')}` }],
    ['credentials that are not base64', { authorization: 'Basic *' }],
    ['no UTF-8', { authorization: `Basic ${encode(Buffer.from([0x73, 0x3a, 0xff]))}` }],
    ['a zero byte', { authorization: `Basic ${encode('crypt:pw\0x')}` }],
    ['the hash itself', { authorization: `Basic ${encode(`sha1:${hashes.sha1}`)}` }],
    ['two Authorization fields', { authorization: [`Basic ${encode('sha1:pw')}`, 'Bearer x'] }],
  ])('refuses %s', async (_, headers) => {
    const { status, body } = await ask('users', headers as Headers)
    expect([status, body]).toEqual([401, 'basic authentication failure: invalid credentials'])
  })

  it('ignores the case of the scheme, and treats another scheme as no credentials', async () => {
    const authorization = `bAsIc ${encode('sha1:pw')}`
    expect((await ask('users', { authorization })).status).toBe(200)
    expect((await ask('users', { authorization: 'Bearer token' })).body).toContain('no basic')
  })

  it('[BasicAuthentication=Optional] mode Optional lets requests without credentials pass, but refuses wrong ones', async () => {
    expect((await ask('optional')).status).toBe(200)
    expect((await login('optional', 'sha1', 'pw')).status).toBe(200)
    expect((await login('optional', 'sha1', 'no')).status).toBe(401)
    const authorization = `Basic\t${encode('sha1:no')}`
    expect((await ask('optional', { authorization })).status).toBe(401)
  })

  it('[BasicAuthentication.secretRef] reads an htpasswd file, and reports the lines that it ignores', async () => {
    expect((await login('file', 'ann', 'pw')).status).toBe(200)
    expect((await login('file', 'plain', 'secret-password')).status).toBe(401)
    expect((await login('named-entry', 'ann', 'pw')).status).toBe(200)
    expect((await login('named-entry', 'ann', 'wrong')).status).toBe(401)
    const { message } = await running.condition('GatewayPolicy', 'file', 'Accepted', 'True')
    expect(message).toContain('line 4 of .htaccess of Secret default/people')
  })

  it.each([
    ['absent', 'Secret nobody does not exist'],
    ['misnamed', 'has no entry .htaccess, only htpasswd'],
  ])('refuses all requests and reports it if the Secret is %s', async (name, text) => {
    expect((await login(name, 'ann', 'pw')).status).toBe(401)
    const { message } = await running.condition('GatewayPolicy', name, 'Accepted', 'False')
    expect(message).toContain(text)
  })

  it('refuses a policy with a plain password, without repeating it', async () => {
    const { message } = await running.condition('GatewayPolicy', 'plain', 'Accepted', 'False')
    expect(message).toContain('spec.traffic.basicAuthentication.users[0]')
    expect(message).not.toContain('secret-password')
    expect((await login('plain', 'ann', 'secret-password')).status).toBe(500)
  })

  it('answers gRPC clients with a gRPC status', async () => {
    const { status, headers } = await ask('users', { 'content-type': 'application/grpc' })
    expect([status, headers['grpc-status']]).toEqual([200, '16'])
  })

  it('follows a Secret that changes', async () => {
    running.write('new.yaml', manifest(secret('nobody', { '.htaccess': `ann:${hashes.apr1}` })))
    const headers = { authorization: `Basic ${encode('ann:pw')}` }
    await running.sendUntil(
      port,
      { host: hostOf('absent'), headers },
      ({ status }) => status === 200,
    )
    running.write('new.yaml', manifest(secret('nobody', { '.htaccess': `eve:${hashes.apr1}` })))
    await running.sendUntil(
      port,
      { host: hostOf('absent'), headers },
      ({ status }) => status === 401,
    )
  })
})

describe('a burst of logins whose clients are gone', () => {
  it('does not keep a correct login waiting', async () => {
    const guess = (at: number) =>
      new Promise<void>((resolve) => {
        const authorization = `Basic ${encode(`nobody:guess${at}`)}`
        const socket = connect(port, '127.0.0.1', () => {
          const host = hostOf('slow')
          socket.write(
            `GET / HTTP/1.1\r\nhost: ${host}\r\nauthorization: ${authorization}\r\n\r\n`,
            () => {
              socket.destroy()
              resolve()
            },
          )
        })
      })
    await Promise.all(Array.from({ length: 512 }, (_, at) => guess(at)))
    expect((await login('slow', 'ann', 'pw')).status).toBe(200)
  })
})
