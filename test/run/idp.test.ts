import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type CommandResult, freePort, sluice, startGateway } from '../support/gateway.ts'
import { sign, signingKey } from '../support/identity-provider.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import {
  adminPassword,
  adminUser,
  policyType,
  type RealmServer,
  type RealmServerOptions,
  startRealmServer,
} from '../support/realm-server.ts'
import { startUpstream } from '../support/upstream.ts'

const users = [
  {
    username: 'ann',
    email: 'ann@example.com',
    firstName: 'Ann',
    lastName: 'Archer',
    group: 'sales',
    password: 'pw-of-ann',
  },
  {
    username: 'bob',
    email: 'bob@example.com',
    firstName: 'Bob',
    lastName: 'Baker',
    enabled: true,
    attributes: { group: 'support' },
    password: 'pw-of-bob',
  },
]

let folder: string
let realm: RealmServer
const servers: RealmServer[] = []
const at = (name: string) => join(folder, name)

async function server(options: RealmServerOptions = {}): Promise<RealmServer> {
  realm = await startRealmServer(options)
  servers.push(realm)
  return realm
}

const given = (more: Readonly<Record<string, string>> = {}) => ({
  '--url': realm.url,
  '--realm': realm.realm,
  '--admin-user': adminUser,
  '--admin-password-file': at('password'),
  '--client-id': 'app',
  '--client-file': at('client.json'),
  '--target': 'HTTPRoute/main',
  ...more,
})

function prepare(more: Readonly<Record<string, string>> = {}, ...flags: string[]) {
  return sluice('idp', 'prepare', ...Object.entries(given(more)).flat(), ...flags)
}

/** Everything that must never be shown. */
function expectNoCredential({ stdout, stderr }: CommandResult): void {
  const secrets = [
    adminPassword,
    ...users.map(({ password }) => password),
    ...[...realm.clients.values()].map(({ secret }) => secret),
    ...realm.received.flatMap(({ authorization }) => authorization?.split(' ')[1] ?? []),
  ]
  for (const secret of secrets) expect(stdout + stderr).not.toContain(secret)
}

const refused = async (
  code: number,
  more: Readonly<Record<string, string>> = {},
  ...flags: string[]
): Promise<string> => {
  const result = await prepare(more, ...flags)
  expect([result.code, result.stdout]).toEqual([code, ''])
  expect(result.stderr).not.toContain('bug')
  expectNoCredential(result)
  return result.stderr
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-idp-'))
  writeFileSync(at('password'), `${adminPassword}\n`)
  writeFileSync(at('users.yaml'), JSON.stringify(users))
})

afterEach(async () => {
  await Promise.all(servers.splice(0).map((entry) => entry.close()))
  rmSync(folder, { recursive: true, force: true })
})

const bodyOf = (path: string): unknown =>
  JSON.parse(realm.received.find((call) => call.path.endsWith(path))?.text ?? 'null')

describe('sluice idp prepare', () => {
  it('[idp.1] [idp.2] [idp.3] [idp.4] [idp.5] [idp.6] [idp.9] [idp.auth] [idp.rule.1] [idp.rule.5] sets up a realm', async () => {
    await server()
    const result = await prepare(
      { '--users-file': at('users.yaml'), '--redirect-uri': 'https://app.example.com/*' },
      '--service-accounts',
      '--direct-access-grants',
    )
    expect([result.code, result.stderr.includes('sluice:')]).toEqual([0, false])
    expectNoCredential(result)
    const [client] = realm.clients.values()
    const admin = '/admin/realms/shop'
    expect(realm.calls).toEqual([
      'GET /realms/shop/.well-known/openid-configuration -> 200',
      `POST ${admin}/clients-initial-access -> 200`,
      'POST /realms/shop/clients-registrations/default -> 201',
      `PUT ${admin}/clients/${client?.id} -> 204`,
      `POST ${admin}/clients/${client?.id}/protocol-mappers/models -> 201`,
      `POST ${admin}/users -> 201`,
      `POST ${admin}/users -> 201`,
    ])
    const [token] = realm.received.filter(({ path }) => path.endsWith('/token'))
    expect(Object.fromEntries(new URLSearchParams(token?.text))).toEqual({
      client_id: 'admin-cli',
      username: adminUser,
      password: adminPassword,
      grant_type: 'password',
    })
    expect(bodyOf('/default')).toEqual({ clientId: 'app' })
    expect(bodyOf(`/clients/${client?.id}`)).toEqual({
      serviceAccountsEnabled: true,
      directAccessGrantsEnabled: true,
      authorizationServicesEnabled: false,
      redirectUris: ['https://app.example.com/*'],
    })
    expect(client?.mappers).toEqual([
      {
        name: 'group',
        protocol: 'openid-connect',
        protocolMapper: 'oidc-usermodel-attribute-mapper',
        config: {
          'claim.name': 'group',
          'jsonType.label': 'String',
          'user.attribute': 'group',
          'id.token.claim': 'true',
          'access.token.claim': 'true',
        },
      },
    ])
    expect([...realm.users.values()]).toEqual(
      users.map(({ username, email, firstName, lastName, password, ...more }) => ({
        username,
        email,
        firstName,
        lastName,
        enabled: true,
        attributes: 'group' in more ? { group: more.group } : more.attributes,
        credentials: [{ type: 'password', value: password, temporary: false }],
      })),
    )
    expect(JSON.parse(readFileSync(at('client.json'), 'utf8'))).toEqual({
      url: realm.url,
      realm: 'shop',
      clientId: 'app',
      id: client?.id,
      secret: client?.secret,
    })
    expect(statSync(at('client.json')).mode & 0o777).toBe(0o600)
  })

  it('[idp.rule.3] [idp.rule.4] prints a policy of the issuer and the path of its keys', async () => {
    await server()
    const { stdout } = await prepare({ '--audience': 'app', '--namespace': 'web' })
    const [backend, printed, more] = parseAllDocuments(stdout).map((document) => document.toJS())
    const { port } = new URL(realm.url)
    expect(more).toBeUndefined()
    expect(backend.spec.static).toEqual({ host: '127.0.0.1', port: Number(port) })
    expect(printed.metadata).toEqual({ name: 'idp-shop', namespace: 'web' })
    expect(printed.spec.traffic.jwtAuthentication.providers).toEqual([
      {
        issuer: `${realm.url}/realms/shop`,
        audiences: ['app'],
        jwks: {
          remote: {
            jwksPath: '/realms/shop/protocol/openid-connect/certs',
            backendRef: { group: 'sluice.dev', kind: 'GatewayBackend', name: 'idp-shop' },
          },
        },
      },
    ])
    const again = await prepare({ '--backend': 'Service/idp:8080', '--output': 'json' })
    const { items } = JSON.parse(again.stdout)
    expect(items).toHaveLength(1)
    const [{ jwks }] = items[0].spec.traffic.jwtAuthentication.providers
    const service = { group: '', kind: 'Service', name: 'idp', port: 8080 }
    expect(jwks.remote.backendRef).toEqual(service)
  })

  it('[idp.7] [idp.8] [idp.rule.2] removes the client registration restrictions only with the test option', async () => {
    await server({ isRestricted: true })
    const type = { '--registration-policy-type': policyType }
    expect(await refused(1, type)).toContain(
      'POST /realms/shop/clients-registrations/default answers 403 (Host not trusted.)',
    )
    expect(realm.components).toHaveLength(4)
    expect(realm.calls.some((call) => call.includes('components'))).toBe(false)
    expect((await prepare(type, '--testing')).code).toBe(0)
    expect(realm.components.map(({ id }) => id)).toEqual(['keep-1', 'keep-2'])
    const components = '/admin/realms/shop/components'
    expect(realm.calls.filter((call) => call.includes('components'))).toEqual([
      `GET ${components}?type=${policyType} -> 200`,
      `DELETE ${components}/lock-1 -> 204`,
      `DELETE ${components}/lock-2 -> 204`,
    ])
    expect((await prepare(type, '--testing')).code).toBe(0)
  })

  it('is idempotent', async () => {
    await server()
    const more = { '--users-file': at('users.yaml') }
    const first = await prepare(more)
    const state = () => JSON.stringify([...realm.clients.values(), ...realm.users.values()])
    const before = state()
    const second = await prepare(more)
    expect([second.code, second.stdout]).toEqual([0, first.stdout])
    expect(state()).toBe(before)
    expect(second.stderr).toContain('client app is registered already')
    expect(second.stderr).toContain('mapper group exists already')
    expect(second.stderr).toContain('user ann, or another with this email, exists already')
    expectNoCredential(second)
  })

  it('[idp.rule.6] [error.10] refreshes a stale admin token once per call', async () => {
    await server({ tokenUses: 1 })
    const more = { '--users-file': at('users.yaml'), '--registration-policy-type': policyType }
    expect((await prepare(more, '--testing')).code).toBe(0)
    expect(realm.users.size).toBe(2)
    const stale = realm.calls.filter((call) => call.endsWith('401'))
    const tokens = realm.received.filter(({ path }) => path.endsWith('/token'))
    expect(stale.length).toBeGreaterThan(3)
    expect(tokens).toHaveLength(stale.length + 1)
    expect(new Set(stale).size).toBeGreaterThanOrEqual(stale.length - 1)
  })

  it('[idp.rule.6] gives up after one refreshed token, naming the call', async () => {
    await server()
    realm.failures.set('POST users', { status: 401, body: { error: 'HTTP 401 Unauthorized' } })
    const stderr = await refused(1, { '--users-file': at('users.yaml') })
    expect(stderr).toContain(
      'POST /admin/realms/shop/users answers 401 (HTTP 401 Unauthorized): a new token did not help',
    )
    expect(realm.calls.filter((call) => call.includes('/users'))).toHaveLength(2)
    expect(realm.received.filter(({ path }) => path.endsWith('/token'))).toHaveLength(2)
  })
})

describe('sluice idp prepare, refused', () => {
  const noRun = 'http://127.0.0.1:1'

  it('reports wrong options before any request, and a wrong client file before it changes the realm', async () => {
    await server({ isRestricted: true })
    writeFileSync(at('bad.yaml'), JSON.stringify([{ ...users[0], passwrod: 'pw-of-ann' }]))
    writeFileSync(at('torn.yaml'), '- password: "pw-of-ann\n  : [')
    writeFileSync(at('empty'), '\n')
    writeFileSync(at('other.json'), JSON.stringify({ url: noRun, id: 'x', secret: 'pw-of-bob' }))
    const cases: [Record<string, string>, string][] = [
      [{ '--url': 'ftp://x' }, '--url: must be an address'],
      [{ '--url': 'https://me:pw-of-ann@x' }, '--url: must not contain credentials'],
      [{ '--target': 'Pod/x' }, "--target: 'Pod/x' must be Gateway/NAME"],
      [{ '--target': 'HTTPRoute/A_b' }, "--target: 'A_b' is not a valid object name"],
      [{ '--client-id': '' }, '--client-id <id>'],
      [{ '--redirect-uri': '' }, '--redirect-uri <uri>'],
      [{ '--backend': 'Service/x' }, "--backend: 'Service/x' must be Service/NAME:PORT"],
      [{ '--timeout': 'soon' }, "--timeout: 'soon' is not a duration"],
      [{ '--admin-password-file': at('none') }, `--admin-password-file: ${at('none')}: ENOENT`],
      [{ '--users-file': at('none') }, `--users-file: ${at('none')}: ENOENT`],
      [{ '--admin-password-file': at('empty') }, 'empty: is empty'],
      [{ '--admin-password': 'pw-of-ann' }, 'a password is never an argument'],
      [{ '--users-file': at('bad.yaml') }, 'bad.yaml: [0].passwrod: unknown'],
      [{ '--users-file': at('torn.yaml') }, 'torn.yaml: is neither YAML nor JSON'],
    ]
    await Promise.all(
      cases.map(async ([more, message]) => expect(await refused(2, more)).toContain(message)),
    )
    expect(realm.received).toEqual([])
    expect(await refused(2, { '--client-file': at('other.json') }, '--testing')).toContain(
      `other.json: 'url' is not '${realm.url}'`,
    )
    expect(await refused(2, { '--client-file': at('no/client.json') }, '--testing')).toContain(
      'its folder does not exist',
    )
    expect(realm.clients.size).toBe(0)
    expect(realm.components).toHaveLength(4)
  })

  it('reports an unreachable server, a missing realm and a wrong password', async () => {
    await server()
    const gone = await refused(1, { '--url': noRun })
    expect(gone).toContain('GET /realms/shop/.well-known/openid-configuration failed at')
    expect(await refused(1, { '--realm': 'shoe' })).toContain(
      "answers 404 (Realm does not exist): does the realm 'shoe' exist?",
    )
    writeFileSync(at('password'), 'pw-of-ann')
    const wrong = await refused(1)
    expect(wrong).toContain('POST /realms/master/protocol/openid-connect/token answers 401')
    expect(wrong).toContain('(Invalid user credentials: (credential))')
    expect(wrong).toContain('check --admin-user, its password')
    expect(realm.clients.size).toBe(0)
  })

  it('reports malformed answers: truncated JSON, missing fields, redirects', async () => {
    await server()
    const wellKnown = 'GET openid-configuration'
    const cases: [string, object, string][] = [
      [wellKnown, { status: 200, body: '{"issuer": ' }, 'openid-configuration is not JSON'],
      [wellKnown, { status: 200, body: { issuer: 'x' } }, "has no text in 'jwks_uri'"],
      [wellKnown, { status: 200, body: { issuer: 'x', jwks_uri: 'y' } }, 'that is not a URL'],
      [wellKnown, { status: 302 }, 'answers 302: it redirects'],
      ['POST token', { status: 200, body: 'null' }, "has no text in 'access_token'"],
      ['POST clients-initial-access', { status: 200, body: {} }, "has no text in 'token'"],
      ['POST default', { status: 201, body: {} }, "has no text in 'id'"],
      [
        'POST users',
        { status: 500, body: 'pw-of-ann' },
        'POST /admin/realms/shop/users answers 500',
      ],
    ]
    for (const [call, reply, message] of cases) {
      realm.failures.clear()
      realm.failures.set(call, reply as { status: number })
      expect(await refused(1, { '--users-file': at('users.yaml') })).toContain(message)
    }
  })

  it('reports a client that another run registered, or that was deleted', async () => {
    await server()
    expect((await prepare()).code).toBe(0)
    const taken = await refused(1, { '--client-file': at('fresh.json') })
    expect(taken).toContain('default answers 409 (Client Identifier in use)')
    expect(taken).toContain('give the --client-file of the run that registered it')
    realm.clients.clear()
    expect(await refused(1)).toContain('the client is gone; delete the file of --client-file')
  })
})

describe('a gateway with the printed policy', () => {
  let port: number
  beforeAll(async () => {
    port = await freePort()
  })
  const clean: (() => Promise<unknown>)[] = []
  afterAll(() => Promise.all(clean.map((close) => close())))

  it('[idp.validate] [idp.rule.1] accepts only tokens of the prepared realm with their group', async () => {
    await server()
    const upstream = await startUpstream()
    clean.push(() => upstream.close())
    const { stdout } = await prepare({ '--users-file': at('users.yaml') }, '--direct-access-grants')
    const main = httpRoute('main', { rules: [{ backendRefs: [toBackend('main')] }] })
    const onlySales = policy('sales', 'HTTPRoute/main', {
      traffic: { authorization: { policy: { matchExpressions: ['jwt.group == "sales"'] } } },
    })
    const running = await startGateway({
      manifests: {
        'all.yaml': manifest(gateway(port), staticBackend('main', upstream.port), main, onlySales),
        'idp.yaml': stdout,
      },
    })
    clean.push(() => running.dispose())
    const { secret } = JSON.parse(readFileSync(at('client.json'), 'utf8')) as { secret: string }
    const tokensOf = async (username: string) => {
      const fields = { client_id: 'app', client_secret: secret, grant_type: 'password' }
      const body = new URLSearchParams({ ...fields, username, password: `pw-of-${username}` })
      const response = await fetch(`${realm.issuer}/protocol/openid-connect/token`, {
        method: 'POST',
        body,
      })
      return (await response.json()) as { access_token: string; id_token: string }
    }
    const status = async (token: string) =>
      (await running.send(port, { headers: { authorization: `Bearer ${token}` } })).status
    const [ann, bob] = [await tokensOf('ann'), await tokensOf('bob')]
    expect([await status(ann.access_token), await status(ann.id_token)]).toEqual([200, 200])
    expect(await status(bob.access_token)).toBe(403)
    const strange = await signingKey('realm')
    expect(await status(await sign(strange, { iss: realm.issuer, group: 'sales' }))).toBe(401)
    const other = await sign(strange, { iss: 'https://other.example.com', group: 'sales' })
    expect(await status(other)).toBe(401)
    expect((await running.send(port, {})).status).toBe(401)
  })
})
